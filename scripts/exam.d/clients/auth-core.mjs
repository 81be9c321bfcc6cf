import { randomBytes } from 'node:crypto';
import { Auth } from '@auth/core';
import { env, known, redirected, run } from './program.mjs';

// It leaves refreshes to its user.
if (!env.OAUTH_AUTHORIZATION_ENDPOINT) process.exit(1);
delete env.OAUTH_REFRESH_TOKEN;
let account;
const config = {
  secret: randomBytes(32).toString('hex'),
  trustHost: true,
  providers: [
    {
      ...{ id: 'cloud', name: 'Cloud', type: 'oidc', issuer: env.OAUTH_ISSUER },
      ...{ clientId: known.id, clientSecret: known.secret },
    },
  ],
  callbacks: {
    jwt({ token, account: found }) {
      account = found ?? account;
      return token;
    },
  },
};

// The user's browser has these cookies.
const cookies = new Map();
async function visit(url, form) {
  const cookie = [...cookies].map((pair) => pair.join('=')).join('; ');
  const post = form && { method: 'POST', body: new URLSearchParams(form) };
  const response = await Auth(new Request(url, { ...post, headers: { cookie } }), config);
  for (const line of response.headers.getSetCookie()) {
    const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
    cookies.set(name, value);
  }
  return response;
}

async function login() {
  const base = known.redirectUri.replace('/callback/cloud', '');
  const { csrfToken } = await (await visit(`${base}/csrf`)).json();
  const { headers } = await visit(`${base}/signin/cloud`, { csrfToken });
  await visit(await redirected(headers.get('location')));
  if (account === undefined) throw new Error('the login failed');
  return { access_token: account.access_token };
}

const refresh = () => Promise.reject(new Error('no refresh'));
await run({ refresh, login });
