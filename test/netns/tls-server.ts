/**
 * A device that serves TLS on port 8443 of all addresses, with a certificate of its own CA for the IPv4 address that is
 * the first argument. Writes `listening`, and `connected` for each connection.
 */
import { createServer } from 'node:tls';
import { createAuthority, issueLeaf } from '../../src/system/x509/issuing.ts';

const [address = ''] = process.argv.slice(2);
const { certificate, key } = await issueLeaf(await createAuthority(), {
  names: [],
  addresses: [address],
  now: Date.now(),
});
createServer({ cert: certificate, key })
  .on('connection', (socket) => {
    socket.on('error', () => undefined);
    console.log('connected');
  })
  .on('tlsClientError', () => undefined)
  .listen(8443, () => console.log('listening'));
