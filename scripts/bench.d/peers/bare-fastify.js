// What fastify costs by itself: a constant of the size of the emulator's answers. The form is read as text.
import { fastify } from 'fastify';

const app = fastify();
const token = 'x'.repeat(58);
const answer = { access_token: token, expires_in: 3600, token_type: 'bearer', scope: null, refresh_token: token };
app.removeAllContentTypeParsers();
app.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) => done(null, body));
app.post('/token', async () => answer);
app.get('/code', async () => ({ code: 'x'.repeat(43) }));
await app.listen({ host: '127.0.0.1', port: 0 });
const tokens = Array.from({ length: Number(process.argv[4]) }, (_, index) => `refresh-${index}`);
console.log(JSON.stringify({ port: app.server.address().port, path: '/token', poll: '/code', tokens }));
