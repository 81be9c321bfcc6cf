/** What the tests use of simple-oauth2's client credentials grant, in addition to what the emulator's tests declare. */
declare module 'simple-oauth2' {
  export interface AccessToken {
    revoke(tokenType: 'access_token' | 'refresh_token'): Promise<unknown>;
  }
  export class ClientCredentials {
    constructor(options: {
      client: { id: string; secret: string };
      auth: { tokenHost: string; tokenPath: string; revokePath?: string };
      options?: { authorizationMethod?: 'header' | 'body' };
    });
    getToken(params: { scope?: string }): Promise<AccessToken>;
    createToken(token: Record<string, unknown>): AccessToken;
  }
}
