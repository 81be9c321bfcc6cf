// A bare Node.js that listens on HTTP. It uses `require`, because an import evaluates all exports of node:http, fetch
// included.
const { createServer } = require('node:http');

const server = createServer((_request, response) => response.end());
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify(server.address())));
