import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { parsePostgresUrl } from '../../../src/store/postgres/database/postgres-url.ts';

const PASSWORD = 'pass-word-0815';

/** The parsed URL with its password in the clear. */
function parse(text: string) {
  const { password, ...rest } = parsePostgresUrl(text);
  return { ...rest, password: password?.reveal() ?? null };
}

function errorOf(text: string): string {
  try {
    parsePostgresUrl(text);
  } catch (error) {
    return inspect(error);
  }
  throw new Error(`${text} was accepted`);
}

describe('the URL of a site’s database', () => {
  it('the parts of a URL are decoded, and its description has no secret', () => {
    const text = `postgresql://hub%40home:${PASSWORD}%2F%3A%40@db.example:6432/latch%20key?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem`;
    expect(parse(text)).toEqual({
      host: 'db.example',
      port: 6432,
      user: 'hub@home',
      password: `${PASSWORD}/:@`,
      database: 'latch key',
      tls: { ca: '/etc/ca.pem' },
      description: 'database latch key on db.example:6432',
    });
    expect(inspect(parsePostgresUrl(text), { depth: 9 })).not.toContain(PASSWORD);
  });

  it.for<[text: string, host: string, tls: object | null, describe: string]>([
    ['postgres://u@db.example/n?sslmode=verify-full', 'db.example', { ca: null }, 'database n on db.example:5432'],
    ['postgresql://u@[2001:db8::1]/n?sslmode=verify-full', '2001:db8::1', { ca: null }, 'n on [2001:db8::1]:5432'],
    ['postgresql://u@localhost/n?sslmode=verify-full', 'localhost', { ca: null }, 'n on localhost:5432'],
    ['postgresql://u@127.0.0.1/n?sslmode=disable', '127.0.0.1', null, 'n on 127.0.0.1:5432'],
    ['postgresql://u@/n?host=/run/pg', '/run/pg', null, 'n at the Unix socket /run/pg/.s.PGSQL.5432'],
    ['postgresql://u@:5433/n?host=%2Frun%2Fpg', '/run/pg', null, 'socket /run/pg/.s.PGSQL.5433'],
    ['postgresql://u:p@%2Frun%2Fpg/n?sslmode=disable', '/run/pg', null, 'socket /run/pg/.s.PGSQL.5432'],
  ])('%s is accepted', ([text, host, tls, description]) => {
    const found = parse(text);
    expect(found).toMatchObject({ host, tls });
    expect(found.description).toContain(description);
  });

  it('a URL without a password, or with an empty one, has none', () => {
    expect(parse('postgresql://u@localhost/n').password).toBeNull();
    expect(parse('postgresql://u:@localhost/n').password).toBeNull();
  });

  const user = `postgresql://u:${PASSWORD}`;
  it.for<[text: string, says: string]>([
    [`mysql://u:${PASSWORD}@db.example/n`, 'must begin with "postgresql://"'],
    [`${user}@db.example/n`, 'must have sslmode=verify-full, because the database is on another machine (it has no'],
    [`${user}@db.example/n?sslmode=require`, 'must have sslmode=verify-full, because the database is on another'],
    [`${user}@db.example/n?sslmode=disable`, '(found "disable")'],
    [`${user}@localhost.example/n?sslmode=disable`, '(found "disable")'],
    [`${user}@localhost/n?sslmode=prefer`, 'must be verify-full or disable (found "prefer")'],
    [`${user}@localhost/n?sslrootcert=ca.pem`, '"sslrootcert" needs sslmode=verify-full'],
    [`${user}@/n?host=/run/pg&sslmode=verify-full`, 'a Unix socket has no TLS'],
    [`${user}@db.example?sslmode=verify-full`, 'must name the database'],
    ['postgresql://db.example/n?sslmode=verify-full', 'must name the user'],
    [`${user}@/n`, 'must name the host'],
    [`${user}@a.example/n?host=/run/pg`, 'must name the host once'],
    [`${user}@/n?host=db.example`, 'absolute path of the directory'],
    [`${user}@a.example,b.example/n?sslmode=verify-full`, 'must name one host'],
    [`${user}@db.example:0/n?sslmode=verify-full`, 'a number from 1 to 65535'],
    [`${user}@db.example:65536/n?sslmode=verify-full`, 'a number from 1 to 65535'],
    [`${user}@db.example:pg/n?sslmode=verify-full`, 'must have the form'],
    [`${user}/@db.example/n?sslmode=verify-full`, 'must have the form'],
    [`${user}@x@db.example/n?sslmode=verify-full`, '"@" as %40'],
    [`${user}:x@db.example/n?sslmode=verify-full`, '":" as %3A'],
    [`${user}#@db.example/n?sslmode=verify-full`, '"#" as %23'],
    [`${user}%@db.example/n?sslmode=verify-full`, 'the password in the URL is encoded incorrectly'],
    [`${user}@localhost/n?application_name=x`, 'unknown parameter "application_name"; allowed parameters: sslmode'],
    [`${user}@localhost/n?password=${PASSWORD}`, 'unknown parameter "password"'],
    [`postgresql://latchkey:abc?${PASSWORD}@db.example/n`, '"?" as %3F'],
    [`${user}@localhost/n?sslmode=disable&sslmode=disable`, 'one value for the parameter "sslmode"'],
  ])('%s is refused without its password', ([text, says]) => {
    const message = errorOf(text);
    expect(message).toContain(says);
    expect(message).toContain("code: 'config_invalid'");
    expect(message).not.toContain(PASSWORD);
  });
});
