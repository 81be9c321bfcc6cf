import { html } from 'ghtml';
import type { PairingView } from '../../core/pairings/pairing-administration.ts';
import { isLoopbackHost, urlAddressScope } from '../../system/addresses.ts';
import { qrSvg } from '../elements.ts';
import type { AuthenticatedRequest } from '../page-context.ts';
import { pasteAddressPath } from '../paths.ts';
import type { Texts } from '../texts/en.ts';

type WaitingStatus = Extract<PairingView['status'], { event: 'waiting' }>;

/**
 * How a person logs in: the link as a button and as a QR code, the code of a login by device code, and the way to paste
 * the address on which the browser ends.
 * @returns HTML
 */
export function renderLoginLink(
  req: AuthenticatedRequest,
  { id, portal }: Pick<PairingView, 'id' | 'portal'>,
  status: WaitingStatus,
): string {
  const { texts: allTexts, ingress } = req.context;
  const { pairing: texts } = allTexts;
  // Portals do not let other sites frame their login.
  const isFramed = ingress !== undefined;
  const { authorizeUrl, userCode, containsUserCode = false, acceptsAddress = false, endsAtPortal = false } = status;
  const pastePath = pasteAddressPath(id);
  const button = portal === null ? texts.logIn : texts.logInAt(portal);
  const end = acceptsAddress ? loginEnd(authorizeUrl, req) : null;
  if (end !== null) {
    const expected = end.kind === 'app' ? texts.paste.expectedApp(end.scheme) : texts.paste.expected;
    return html`<p>${expected}</p>
!${renderButton(button, authorizeUrl, true)}
<a class="button" id="paste" href="${pastePath}">${texts.paste.open}</a>`;
  }
  const code =
    userCode === undefined
      ? ''
      : html`<p>${containsUserCode ? texts.compareCode : texts.enterCode}</p><p class="user-code" id="user-code">${userCode}</p>`;
  const paste = acceptsAddress ? html`<a class="back" id="paste" href="${pastePath}">${texts.paste.question}</a>` : '';
  return html`!${renderButton(button, authorizeUrl, isFramed || endsAtPortal)}
!${code}
!${renderQrCode(texts, authorizeUrl, acceptsAddress)}
!${paste}`;
}

/** @param inNewTab if the person still needs this page at the portal, or afterwards */
function renderButton(text: string, authorizeUrl: string, inNewTab: boolean): string {
  const target = inNewTab ? ' target="_blank"' : '';
  return html`<a class="button primary" id="login" href="${authorizeUrl}" rel="noopener noreferrer"!${target}>${text}</a>`;
}

/** Nothing if the link is too long. @param isRedirected whether the portal redirects the browser to the hub */
function renderQrCode({ scan, qr }: Texts['pairing'], authorizeUrl: string, isRedirected: boolean): string {
  const code = qrSvg(authorizeUrl, qr);
  const scope = urlAddressScope(authorizeUrl);
  // The hub can only be reached in its own network.
  const text = scan[isRedirected && scope === 'anywhere' ? 'home' : scope];
  return code === null ? '' : html`<p>${text}</p>!${code}`;
}

/** The end of a login on an address that no browser can open: an error page, or an app (RFC 8252, 7). */
type LoginWrite = { readonly kind: 'page' } | { readonly kind: 'app'; readonly scheme: string };

/**
 * Where a login ends if no browser can open that address: that of a program on its own machine, or of an app. It is in
 * the authorization request (RFC 6749, 4.1.1). Null if it ends on the web.
 */
export function loginEnd(authorizeUrl: string, { request }: AuthenticatedRequest): LoginWrite | null {
  const redirect = URL.parse(URL.parse(authorizeUrl)?.searchParams.get('redirect_uri') ?? '');
  if (redirect === null) return null;
  const { protocol, hostname } = redirect;
  if (protocol !== 'http:' && protocol !== 'https:') return { kind: 'app', scheme: protocol };
  return isLoopbackHost(hostname) && hostname !== request.hostname ? { kind: 'page' } : null;
}
