// What every adapter in Node needs beside its library: it calls the API once a second, stores the tokens, asks for new ones
// after a 401, and is the redirect URI. It does not wait, retry or check anything else: that is for the library to do.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';

export const { env } = process;
export const known = {
  id: env.OAUTH_CLIENT_ID ?? '',
  secret: env.OAUTH_CLIENT_SECRET ?? '',
  tokenEndpoint: env.OAUTH_TOKEN_ENDPOINT ?? '',
  redirectUri: env.OAUTH_REDIRECT_URI ?? '',
};
const file = `${env.STATE_DIR}/tokens.json`;

/** The tokens of an earlier run, or the refresh token to begin with; null without either. */
export function load() {
  if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8'));
  return env.OAUTH_REFRESH_TOKEN ? { refresh_token: env.OAUTH_REFRESH_TOKEN } : null;
}

/** Stores tokens, and returns them. */
export function save(tokens) {
  writeFileSync(`${file}.new`, JSON.stringify(tokens), { mode: 0o600 });
  renameSync(`${file}.new`, file);
  return tokens;
}

/** Prints an authorization URL, and waits until the browser comes back. @returns the address that it came to */
export async function redirected(url) {
  const { port, hostname } = new URL(known.redirectUri);
  const { promise, resolve } = Promise.withResolvers();
  const server = createServer((request, response) => {
    response.setHeader('connection', 'close');
    response.end('You can close this page.');
    resolve(new URL(request.url, known.redirectUri));
  });
  server.listen(Number(port), hostname, () => console.log(String(url)));
  return promise.finally(() => server.close());
}

/**
 * Runs a client until it is stopped.
 * @param refresh takes the tokens, and returns the response of the server, with the members of RFC 6749, 5.1
 * @param login returns such a response; left out if the library has no login
 * @param isFinal whether an error of `refresh` says that the refresh token is not valid any more
 */
export async function run({ refresh, login, isFinal = () => false }) {
  let tokens = load();
  if (tokens === null && login === undefined) process.exit(1);
  for (; ; await new Promise((resolve) => setTimeout(resolve, 1000))) {
    try {
      // Another process with this folder may have got newer ones.
      tokens = load() ?? tokens;
      if (tokens === null) tokens = save(await login());
      const headers = { authorization: `Bearer ${tokens.access_token || 'none'}` };
      const { status } = await fetch(env.API_URL, { headers });
      if (status === 401) tokens = save({ ...tokens, ...(await refresh(tokens)) });
    } catch (error) {
      console.error(error.message);
      if (tokens === null || isFinal(error)) process.exit(1);
    }
  }
}
