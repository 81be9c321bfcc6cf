// Node.js listening on HTTP, and nothing more. Required: an import has all that node:http exports evaluated, fetch too.
const { createServer } = require('node:http');

const server = createServer((_request, response) => response.end());
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify(server.address())));
