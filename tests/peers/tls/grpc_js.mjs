// Call an agent by grpc-js: `grpc_js.mjs HOST:PORT`; see `http_client.py`.
// The folder of the call has the packages. grpc-js refuses a server that does not agree on `h2`.

import { createRequire } from 'node:module';

const grpc = createRequire(`${process.cwd()}/`)('@grpc/grpc-js');
const client = new grpc.Client(process.argv[2], grpc.credentials.createSsl());
const same = (bytes) => bytes;
const call = client.makeUnaryRequest('/lf.a2a.v1.A2AService/GetTask', same, same, Buffer.alloc(0), (error) => {
  if (error?.code === grpc.status.UNAVAILABLE) {
    console.error(error.details);
    process.exit(1);
  }
  const pem = call.getAuthContext().sslPeerCertificate.raw.toString('base64').replace(/.{64}/g, '$&\n');
  console.log(`status: 200\nprotocol: h2\n-----BEGIN CERTIFICATE-----\n${pem}\n-----END CERTIFICATE-----`);
  client.close();
});
