import { Client } from 'pg';
import { expect, test } from 'vitest';
import { postgresSkipReason } from '../support/postgres/cluster.ts';
import { COMMIT, PostgresProxy } from '../support/postgres/proxy.ts';
import { type PostgresServer, startPostgres, type TestDatabase } from '../support/postgres/server.ts';
import { setUpOnce } from '../support/set-up.ts';
import { waitFor } from '../support/wait-for.ts';

let server: PostgresServer;
let encrypted: PostgresServer;

setUpOnce(
  async (parts) => {
    server = parts.use(await startPostgres({ tls: false }));
    encrypted = parts.use(await startPostgres());
  },
  { skipReason: postgresSkipReason },
);

/** The errors of a connection that was reset. */
const RESET = /ECONNRESET|Connection terminated|not queryable/;

/** A database with an empty table, and a proxy in front of it. */
async function proxiedDatabase(of = server) {
  await using parts = new AsyncDisposableStack();
  const database = await of.createDatabase();
  await of.sql(database, 'CREATE TABLE grants (name text UNIQUE); GRANT ALL ON grants TO PUBLIC;');
  const proxy = parts.use(await PostgresProxy.start(of));
  const clients: Client[] = [];
  parts.defer(async () => {
    for (const client of clients) await client.end();
  });
  const moved = parts.move();
  return {
    proxy,
    /** A client that connects through the proxy. */
    async client() {
      const client = new Client(proxy.urlOf(database.url));
      client.on('error', () => undefined); // queries reject with it
      clients.push(client);
      await client.connect();
      return client;
    },
    names: () => namesIn(of, database),
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  };
}

function namesIn(of: PostgresServer, database: TestDatabase): Promise<string> {
  return of.sql(database, "SELECT string_agg(name, ' ' ORDER BY name) FROM grants;");
}

/** Inserts a row in a transaction. */
async function insert(client: Client, name: string): Promise<void> {
  await client.query('BEGIN');
  await client.query('INSERT INTO grants VALUES ($1)', [name]);
  await client.query('COMMIT');
}

test.for(['encrypted', 'plain'])('a proxy passes %s connections on, and cuts them', async (kind) => {
  await using database = await proxiedDatabase(kind === 'plain' ? server : encrypted);
  const client = await database.client();
  const other = await database.client();
  await insert(client, 'a');
  const { rows } = await client.query('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()');
  expect(rows).toEqual([{ ssl: kind === 'encrypted' }]);
  // More than one piece of data.
  const long = await client.query("SELECT repeat('x', 1000000) AS text FROM generate_series(1, 5)");
  expect(long.rows.map((row) => row.text.length)).toEqual(Array(5).fill(1_000_000));
  expect(database.proxy.connections).toBe(2);
  database.proxy.cut();
  await expect(client.query('SELECT 1')).rejects.toThrow(RESET);
  await expect(other.query('SELECT 1')).rejects.toThrow(RESET);
  await waitFor(() => expect(database.proxy.connections).toBe(0));
  await insert(await database.client(), 'b');
  expect(await database.names()).toBe('a b');
});

test('a proxy that refuses resets open and further connections until it passes again', async () => {
  await using database = await proxiedDatabase();
  const client = await database.client();
  database.proxy.refuse();
  await expect(client.query('SELECT 1')).rejects.toThrow(RESET);
  await expect(database.client()).rejects.toThrow(RESET);
  database.proxy.pass();
  await insert(await database.client(), 'a');
  expect(await database.names()).toBe('a');
});

test('a proxy resets connections while the server is stopped', async () => {
  await using stopped = await startPostgres({ tls: false });
  await using database = await proxiedDatabase(stopped);
  const client = await database.client();
  await stopped.kill();
  await expect(client.query('SELECT 1')).rejects.toThrow(RESET);
  await expect(database.client()).rejects.toThrow(RESET);
  await stopped.start();
  await insert(await database.client(), 'a');
});

test('a proxy that holds accepts connections, and passes everything on in the end', async () => {
  await using database = await proxiedDatabase();
  const client = await database.client();
  database.proxy.hold();
  const results: string[] = [];
  const query = insert(client, 'a').then(() => results.push('inserted'));
  const connection = database.client().then(() => results.push('connected'));
  await waitFor(() => expect(database.proxy.connections).toBe(2));
  // Both would have ended by now.
  for (let time = 0; time < 5; time++) expect(await database.names()).toBe('');
  expect(results).toEqual([]);
  database.proxy.pass();
  await Promise.all([query, connection]);
  expect(await database.names()).toBe('a');
});

test('a proxy that delays passes a query on later than one that does not', async () => {
  await using slow = await proxiedDatabase();
  await using fast = await proxiedDatabase();
  const [slowClient, fastClient] = [await slow.client(), await fast.client()];
  slow.proxy.delay(500);
  const order: string[] = [];
  const delayed = slowClient.query('SELECT 1').then(() => order.push('delayed'));
  await fastClient.query('SELECT 1').then(() => order.push('not delayed'));
  await delayed;
  slow.proxy.pass();
  expect(order).toEqual(['not delayed', 'delayed']);
});

test('a client that loses the response to its commit has committed', async () => {
  await using database = await proxiedDatabase();
  const client = await database.client();
  const lost = database.proxy.lose('response', COMMIT, { skip: 1 });
  await insert(client, 'a');
  await expect(insert(client, 'b')).rejects.toThrow(RESET);
  await lost;
  expect(await database.names()).toBe('a b');
  // Only one is lost.
  await insert(await database.client(), 'c');
});

test('a client whose commit is lost has not committed', async () => {
  await using database = await proxiedDatabase();
  const client = await database.client();
  const lost = database.proxy.lose('request', COMMIT);
  await expect(insert(client, 'a')).rejects.toThrow(RESET);
  await lost;
  await insert(await database.client(), 'b');
  expect(await database.names()).toBe('b');
});

test.for([
  ['simple query', (client: Client, name: string) => client.query(`INSERT INTO grants VALUES ('${name}')`)],
  ['query with parameters', (client: Client, name: string) => client.query('INSERT INTO grants VALUES ($1)', [name])],
  [
    'prepared statement',
    (client: Client, name: string) =>
      client.query({ name: 'insert', text: 'INSERT INTO grants VALUES ($1)', values: [name] }),
  ],
] as const)('the response to a %s is lost when the statement is committed', async ([, insertOne]) => {
  await using database = await proxiedDatabase();
  const client = await database.client();
  const lost = database.proxy.lose('response', /^INSERT/, { skip: 1 });
  await insertOne(client, 'a');
  await expect(insertOne(client, 'a')).rejects.toThrow('duplicate key'); // does not count
  await client.query('SELECT 1');
  await expect(insertOne(client, 'b')).rejects.toThrow(RESET);
  await lost;
  expect(await database.names()).toBe('a b');
});

test('a response that is held arrives in the end, and its statement is committed before', async () => {
  await using database = await proxiedDatabase();
  const client = await database.client();
  const held = database.proxy.lose('response', COMMIT, { by: 'hold' });
  let isInserted = false;
  const inserting = insert(client, 'a').then(() => {
    isInserted = true;
  });
  await held;
  expect(await database.names()).toBe('a');
  expect(isInserted).toBe(false);
  database.proxy.pass();
  await inserting;
});
