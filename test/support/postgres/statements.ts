import { Client, type ClientConfig } from 'pg';
import { scaleDeadline } from '../deadlines.ts';

/** One statement of a text: quoted parts, and what is outside of them up to the next semicolon. */
const STATEMENT = /(?:\$\$[\s\S]*?\$\$|'(?:[^']|'')*'|[^;'])+/g;

/**
 * Runs statements on a connection of their own, each in its own transaction.
 * @param text the statements, with semicolons between them
 * @returns the rows, one per line, with `|` between the columns
 * @throws Error with the server's message if a statement fails, or if there is no response in time
 */
export async function runStatements(database: ClientConfig, text: string): Promise<string> {
  const timeout = scaleDeadline(15_000);
  const client = new Client({ ...database, connectionTimeoutMillis: timeout, query_timeout: timeout });
  // The query that is under way fails as well.
  client.on('error', () => undefined);
  await using _ended = { [Symbol.asyncDispose]: () => client.end() };
  await client.connect();
  const rows: string[] = [];
  for (const [statement] of text.matchAll(STATEMENT)) {
    if (statement.trim() === '') continue;
    const types = { getTypeParser: () => (value: string) => value };
    const result = await client.query<(string | null)[]>({ text: statement, rowMode: 'array', types });
    rows.push(...result.rows.map((row) => row.join('|')));
  }
  return rows.join('\n');
}
