// oidc-provider with its own in-memory adapter and refresh token rotation. The tokens to begin with are made here, as a
// login would leave them; without the scope openid, so that no ID token has to be signed.
import Provider from 'oidc-provider';

const [clientId, clientSecret, chains] = process.argv.slice(2);
const provider = new Provider('http://127.0.0.1', {
  clients: [
    {
      client_id: clientId,
      client_secret: clientSecret,
      grant_types: ['authorization_code', 'refresh_token'],
      redirect_uris: ['http://127.0.0.1:1/callback'],
      token_endpoint_auth_method: 'client_secret_post',
    },
  ],
  scopes: ['offline_access', 'Monitoring'],
  rotateRefreshToken: true,
  ttl: { AccessToken: 3600, RefreshToken: 86400, Grant: 86400 },
  features: { devInteractions: { enabled: false } },
  findAccount: (_ctx, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
});
const client = await provider.Client.find(clientId);
const tokens = [];
for (let i = 0; i < Number(chains); i += 1) {
  const accountId = `user-${i}`;
  const grant = new provider.Grant({ accountId, clientId });
  grant.addOIDCScope('offline_access Monitoring');
  const grantId = await grant.save();
  const scope = 'offline_access Monitoring';
  tokens.push(await new provider.RefreshToken({ accountId, client, grantId, gty: 'authorization_code', scope }).save());
}
const server = provider.listen(0, '127.0.0.1', () => {
  console.log(JSON.stringify({ port: server.address().port, path: '/token', tokens }));
});
