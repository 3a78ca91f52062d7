// Fetch a URL by the `fetch` of Node.js: `fetch.mjs URL`; see `http_client.py`.

import { subscribe } from 'node:diagnostics_channel';

let tls;
subscribe('undici:client:connected', ({ socket }) => {
  if (socket.encrypted) tls = socket;
});
const answer = await fetch(process.argv[2]);
const pem = tls.getPeerCertificate().raw.toString('base64').replace(/.{64}/g, '$&\n');
console.log(`status: ${answer.status}\nprotocol: ${tls.alpnProtocol}`);
console.log(`-----BEGIN CERTIFICATE-----\n${pem}\n-----END CERTIFICATE-----`);
await answer.text();
