// An oauth2-mock-server with a key, as its documentation shows: `node oauth2-mock-server.mjs MODULE`. Prints its port.
const { OAuth2Server } = await import(process.argv[2]);
const server = new OAuth2Server();
await server.issuer.keys.generate('RS256');
await server.start(0, '127.0.0.1');
console.log(JSON.stringify({ port: server.address().port }));
