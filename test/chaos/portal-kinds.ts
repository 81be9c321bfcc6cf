/**
 * How a hub uses the emulator: as the helper portal of docs/portal.md, or as an OAuth 2.0 authorization server
 * (`type = "oauth2"`) whose endpoints it discovers or finds in its configuration.
 */
export const PORTAL_KINDS = ['helper', 'discovered', 'configured'] as const;
export type PortalKind = (typeof PORTAL_KINDS)[number];

/** The kind of the portal of the connection with this number, so that all kinds have connections. */
export function kindInTurn(index: number): PortalKind {
  return PORTAL_KINDS[index % PORTAL_KINDS.length] ?? 'helper';
}

/** A portal of a hub's configuration. */
export interface PortalTable {
  /** Its name, that of the table. */
  readonly name: string;
  readonly kind: PortalKind;
  /** A client of its own: two portals with the same address and client would be the same portal. */
  readonly clientId: string;
  /** More keys as TOML lines. */
  readonly keys?: readonly string[];
}

/** A table `[portals.NAME]`; the client secret is in `portal.secret`. */
export function portalTable(
  { baseUrl, frontendUrl }: { readonly baseUrl: string; readonly frontendUrl: string },
  { name, kind, clientId, keys = [] }: PortalTable,
): string {
  const endpoints: Record<PortalKind, readonly string[]> = {
    helper: [
      `base_url = "${baseUrl}"`,
      `frontend_url = "${frontendUrl}"`,
      `revocation_endpoint = "${baseUrl}/oauth2/revoke"`,
    ],
    discovered: ['type = "oauth2"', `issuer = "${frontendUrl}"`],
    configured: [
      'type = "oauth2"',
      `authorization_endpoint = "${frontendUrl}/oauth2/authorize"`,
      `token_endpoint = "${frontendUrl}/oauth2/token"`,
      `revocation_endpoint = "${frontendUrl}/oauth2/revoke"`,
    ],
  };
  const client = [`client_id = "${clientId}"`, 'client_secret_file = "portal.secret"'];
  return [`[portals.${name}]`, ...endpoints[kind], ...client, ...keys].join('\n');
}
