/**
 * A portal at https://<name>:8443 for the names that are arguments after the file for its CA. It refuses every refresh
 * token, knows no client at its config endpoint, and takes webhooks. Writes `listening`.
 */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { createAuthority, issueLeaf } from '../../src/system/x509/issuing.ts';

const [caFile = '', ...names] = process.argv.slice(2);
const authority = await createAuthority();
writeFileSync(caFile, authority.certificate);
const { certificate, key } = await issueLeaf(authority, { names, addresses: [], now: Date.now() });
createServer({ cert: certificate, key }, ({ url = '' }, response) => {
  response.writeHead(url === '/hook' ? 204 : 400, { 'content-type': 'application/json' });
  response.end(url === '/hook' ? '' : '{"error":"invalid_grant"}');
}).listen(8443, '10.78.0.1', () => console.log('listening'));
