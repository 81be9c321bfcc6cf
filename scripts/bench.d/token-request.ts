/** What an OAuth library sends for a token, as it goes over the wire: `client_credentials`, `client_secret_basic`. */
export function tokenRequest(
  port: number,
  { client_id, client_secret }: { readonly client_id: string; readonly client_secret: string },
  path = '/oauth/token',
): string {
  const body = 'grant_type=client_credentials';
  const headers = [
    `Host: 127.0.0.1:${port}`,
    `Authorization: Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`,
    'Content-Type: application/x-www-form-urlencoded',
    `Content-Length: ${body.length}`,
  ];
  return `POST ${path} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n${body}`;
}
