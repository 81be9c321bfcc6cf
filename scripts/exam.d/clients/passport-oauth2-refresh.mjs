import OAuth2Strategy from 'passport-oauth2';
import refresh from 'passport-oauth2-refresh';
import { env, known, run } from './program.mjs';

const strategy = new OAuth2Strategy(
  {
    authorizationURL: env.OAUTH_AUTHORIZATION_ENDPOINT ?? 'none',
    tokenURL: known.tokenEndpoint || 'none',
    clientID: known.id || 'none',
    clientSecret: known.secret,
    callbackURL: known.redirectUri,
  },
  () => undefined,
);
refresh.use('cloud', strategy);

await run({
  refresh: ({ refresh_token }) =>
    new Promise((resolve, reject) => {
      refresh.requestNewAccessToken('cloud', refresh_token, (error, accessToken, refreshToken) => {
        if (error) reject(error);
        else resolve({ access_token: accessToken, ...(refreshToken && { refresh_token: refreshToken }) });
      });
    }),
  isFinal: ({ data }) => String(data).includes('"invalid_grant"'),
});
