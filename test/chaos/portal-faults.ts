/** What stands before the portal, such as the firewall of a CDN, refuses each refresh with a web page. */
export const FIREWALL = {
  kind: 'status',
  endpoint: 'token',
  status: 403,
  headers: { 'content-type': 'text/html' },
  body: '<!DOCTYPE html>\n<title>Attention Required!</title>\n<p>Sorry, you have been blocked.</p>\n',
  times: null,
} as const;
