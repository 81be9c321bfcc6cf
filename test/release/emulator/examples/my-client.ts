// What the reader of the guide's vitest example provides: a client of the portal, and a login for it.
/** The addresses and the client of the emulator. */
interface Portal {
  readonly baseUrl: string;
  readonly frontendUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

interface Tokens {
  readonly refresh_token: string;
  readonly expires_in: number;
}

export async function pair(portal: Portal, logIn: (state: string) => Promise<unknown>): Promise<Tokens> {
  const config = await fetch(`${portal.baseUrl}/external/oauth2helper/config/${portal.clientId}`, { method: 'POST' });
  const { code_url } = (await config.json()) as { code_url: string };
  await logIn(new URL(code_url).searchParams.get('state') ?? '');
  const { code } = (await (await fetch(code_url)).json()) as { code: string };
  return token(portal, { grant_type: 'authorization_code', code });
}

/** Retries once after a lost answer. */
export async function refresh(portal: Portal, { refresh_token }: Tokens): Promise<Tokens> {
  const attempt = () => token(portal, { grant_type: 'refresh_token', refresh_token });
  return attempt().catch(attempt);
}

async function token(portal: Portal, form: Record<string, string>): Promise<Tokens> {
  const body = new URLSearchParams({ ...form, client_id: portal.clientId, client_secret: portal.clientSecret });
  const response = await fetch(`${portal.frontendUrl}/sso/token`, { method: 'POST', body });
  if (!response.ok) throw new Error(`the portal answered ${response.status}`);
  return (await response.json()) as Tokens;
}
