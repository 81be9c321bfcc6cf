import { html } from 'ghtml';
import { AddressRejection, type PairingView } from '../../core/pairings/pairing-administration.ts';
import type { AdministrationView } from '../administration-view.ts';
import { renderTextField } from '../form-field.ts';
import { pathParameter } from '../http.ts';
import { backLink, csrfForm, type InstallerPage, redirectTo, sendInstallerPage } from '../installer-page.ts';
import type { AuthenticatedRequest } from '../page-context.ts';
import { pairingBatchPath, pairingPath, pasteAddressPath } from '../paths.ts';
import type { AuthenticatedRoutes } from '../sign-in/authenticated-routes.ts';
import type { Texts } from '../texts/en.ts';
import { loginEnd } from './login-link.ts';

/** Characters of the field: a code, a state and an issuer, and the redirect address before them. */
const MAX_ADDRESS_LENGTH = 8192;

/**
 * Serves the page that takes the address on which a browser ended after a login. It is a page of its own, because that
 * of the pairing reloads without scripts, which would empty the field. The address contains a code, so it is only in
 * the body of a form and of the response to it.
 */
export function servePasteAddress(
  guard: AuthenticatedRoutes,
  administration: Pick<AdministrationView, 'getPairing'>,
): void {
  guard.page('/pairings/:id/address', async (req) => {
    const view = administration.getPairing(pathParameter(req, 'id'));
    if (!acceptsAddress(view)) return redirectTo(req, pathAbove(view));
    return sendInstallerPage(req, 200, { ...pasteAddressPage(req, view, '', null), live: true });
  });
  guard.form('/pairings/:id/address', async (submission) => {
    const id = pathParameter(submission, 'id');
    const address = submission.form.get('address') ?? '';
    try {
      await submission.administration.pasteAddress(id, address);
    } catch (error) {
      if (!(error instanceof AddressRejection)) throw error;
      const { reason } = error;
      if (reason !== 'ended') {
        const problem = submission.context.texts.pairing.paste.problems[reason];
        const page = pasteAddressPage(submission, administration.getPairing(id), address, problem);
        return sendInstallerPage(submission, 400, page);
      }
    }
    return redirectTo(submission, pathAbove(administration.getPairing(id)));
  });
}

/** Whether the address on which a browser ended can be pasted. */
function acceptsAddress({ status }: PairingView): boolean {
  return status.event === 'waiting' && status.acceptsAddress === true;
}

/** The page of the pairing, or of the batch that shows it. */
export function pathAbove({ id, batch }: Pick<PairingView, 'id' | 'batch'>): string {
  return batch === null ? pairingPath(id) : pairingBatchPath(batch.id);
}

function pasteAddressPage(
  req: AuthenticatedRequest,
  view: PairingView,
  typed: string,
  problem: string | null,
): InstallerPage {
  const { context, session } = req;
  const { paste } = context.texts.pairing;
  const field = {
    id: 'address',
    label: paste.address,
    hint: paste.secret,
    ...(problem !== null && { problem }),
  };
  const content = html`!${renderTextField(field, typed, problem !== null, MAX_ADDRESS_LENGTH)}
<div class="actions"><button class="primary" id="submit">${paste.connect}</button></div>`;
  return {
    title: paste.title,
    narrow: true,
    body: html`!${backLink(pathAbove(view), paste.back)}
<h1>${paste.title}</h1>
<section class="card">!${renderSteps(paste, req, view)}
!${csrfForm(session, pasteAddressPath(view.id), content, 'fields')}</section>`,
  };
}

/** How a person gets the address, from an error page or from a browser that did not open an app. */
function renderSteps(paste: Texts['pairing']['paste'], req: AuthenticatedRequest, { status }: PairingView): string {
  const end = status.event === 'waiting' ? loginEnd(status.authorizeUrl, req) : null;
  if (end?.kind === 'app') {
    const { safari, chrome, firefox, phone } = paste.browsers;
    return html`<p>${paste.whyApp(end.scheme)}</p>
<ul class="steps"><li>${safari}</li><li>${chrome(end.scheme)}</li><li>${firefox}</li><li>${phone}</li></ul>`;
  }
  return html`<p>${paste.why}</p>
!${renderPicture(paste.picture)}
<ol class="steps"><li>${paste.steps.open}</li><li>${paste.steps.copy}</li><li>${paste.steps.paste}</li></ol>
!${end === null ? html`<p>${paste.httpsOnly}</p>` : ''}`;
}

/**
 * A browser with an error page, whose address goes into the field of the hub's page. Without words, so that it needs no
 * translation.
 * @param description for screen readers
 */
function renderPicture(description: string): string {
  return html`<svg class="picture" viewBox="0 0 320 236" role="img" aria-label="${description}">
<rect class="sheet" x="30" y="4" width="260" height="118" rx="10"/><path d="M30 42h260"/>
<circle class="dot" cx="46" cy="23" r="4"/><rect class="marked" x="60" y="12" width="218" height="22" rx="11"/>
<path class="writing" d="M72 23h14m6 0h40m6 0h26m6 0h52m6 0h30"/>
<path class="bad" d="M160 56l25 44h-50zM160 71v13M160 91v.1"/><path class="faint" d="M112 111h96"/>
<rect class="sheet" x="30" y="144" width="260" height="88" rx="10"/><path class="hub" d="M46 164v-7l8-7 8 7v7z"/><path class="faint" d="M72 158h70"/>
<rect class="marked" x="46" y="180" width="228" height="24" rx="6"/><path class="writing" d="M58 192h14m6 0h40m6 0h26m6 0h52m6 0h44"/>
<path class="arrow" d="M280 23h29v169h-29M289 184l-9 8 9 8"/><rect class="press" x="46" y="212" width="70" height="12" rx="6"/></svg>`;
}
