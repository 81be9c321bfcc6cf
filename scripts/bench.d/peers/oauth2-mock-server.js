// oauth2-mock-server with one RS256 key, as its README sets it up. Its refresh tokens neither rotate nor are checked.
import { OAuth2Server } from 'oauth2-mock-server';

const server = new OAuth2Server();
await server.issuer.keys.generate('RS256');
await server.start(0, '127.0.0.1');
const tokens = Array.from({ length: Number(process.argv[4]) }, (_, index) => `refresh-${index}`);
console.log(JSON.stringify({ port: server.address().port, path: '/token', tokens }));
