// A bare fastify server over HTTPS that sends a constant response to every client. The form is read as text. Arguments:
// a file with TLS options (JSON), and the response as JSON.
import { readFileSync } from 'node:fs';
import { fastify } from 'fastify';

const [file, response] = process.argv.slice(2);
const app = fastify({ https: JSON.parse(readFileSync(file, 'utf8')) });
const constant = JSON.parse(response);
app.removeAllContentTypeParsers();
app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
app.post('/oauth/token', async () => constant);
await app.listen({ host: '127.0.0.1', port: 0 });
console.log(JSON.stringify(app.server.address()));
