/** What the tests use of simple-oauth2, which ships no types. */
declare module 'simple-oauth2' {
  export interface AccessToken {
    readonly token: Readonly<Record<string, unknown>>;
    refresh(params?: { readonly scope?: string }): Promise<AccessToken>;
  }
  export class AuthorizationCode {
    constructor(options: {
      client: { id: string; secret: string };
      auth: { tokenHost: string; tokenPath: string; authorizePath: string };
      options?: { authorizationMethod?: 'header' | 'body' };
    });
    authorizeURL(params: { redirect_uri: string; scope?: string; state?: string }): string;
    getToken(params: { code: string; redirect_uri: string; scope?: string }): Promise<AccessToken>;
  }
}
