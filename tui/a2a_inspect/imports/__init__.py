"""Import of files that other programs wrote: each becomes the records of a journal, which the
observer decodes.

Layers, from top to bottom. A module imports only modules of its own layer and of the layers below
it.

- `recording_writer`: the records to a recording

- `har_file`: a HAR file as records, in order of time

- `packet_capture`: a packet capture as records, in order of time

- `source`: what both of them provide

- `tcp_connection`: the bytes of a TCP connection in order

- `exported_data`: decrypted data that tshark exports

- `tcp_segment`: the segment in a packet

- `packet_file`: the packets of a pcap or pcapng file

- `har_call`: one entry of a HAR file

- `http_writer`: the bytes of HTTP/1.1 and HTTP/2 messages
"""
