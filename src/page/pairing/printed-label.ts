import type { FastifyReply, FastifyRequest } from 'fastify';
import { html } from 'ghtml';
import type { Named } from '../../core/name.ts';
import { labelSvg } from '../../system/label.ts';
import { type AdministrationView, findAppliance } from '../administration-view.ts';
import { pathParameter } from '../http.ts';
import { backLink, csrfForm, type InstallerPage, redirectTo, sendInstallerPage } from '../installer-page.ts';
import type { AuthenticatedRequest } from '../page-context.ts';
import { appliancePath, LABEL_PATH, pairingPath } from '../paths.ts';
import { isPrefetch } from '../request-origin.ts';
import type { AuthenticatedRoutes } from '../sign-in/authenticated-routes.ts';

/** Serves the printable label of an appliance, and the target of its link. */
export function servePrintedLabels(guard: AuthenticatedRoutes, administration: AdministrationView): void {
  guard.page('/appliances/:name/label', async (req) => {
    const { addressLink, ...label } = administration.label(pathParameter(req, 'name'));
    const { caption } = req.context.texts.pairing.label;
    const svg = labelSvg({ ...label, caption, otherLink: addressLink });
    return sendInstallerPage(req, 200, labelPage(req, label, svg));
  });
  guard.page(`${LABEL_PATH}:name`, async (req) => {
    const { appliance } = await findAppliance(req, administration);
    const { name, connection, state } = appliance;
    const open = await req.administration.getOpenPairing(connection).catch(() => null);
    // Its page says that all is well, or what is wrong, and has the button that connects it anew.
    if ((state === 'active' || state === 'retrying') && open === null) return redirectTo(req, appliancePath(name));
    if (!isUserNavigation(req.request)) return sendPairingConfirmation(req, appliance);
    return redirectTo(req, pairingPath(await req.administration.getOrStartPairing(connection)));
  });
}

/** The page of a label. Only the label is printed. */
function labelPage({ context }: AuthenticatedRequest, { name, title }: Named, svg: string): InstallerPage {
  const { label: texts } = context.texts.pairing;
  return {
    title: texts.title(title),
    narrow: true,
    body: html`!${backLink(appliancePath(name), title)}
<h1>${texts.title(title)}</h1>
<p>${texts.what}</p>
<div class="door-label">!${svg}</div>
<p class="hint">${texts.paper}</p>
<div class="actions"><button type="button" class="primary" data-print hidden>${texts.print}</button></div>`,
  };
}

function sendPairingConfirmation(req: AuthenticatedRequest, { name, title }: Named): FastifyReply {
  const { label: texts } = req.context.texts.pairing;
  const heading = texts.heading(title);
  const button = html`<button class="primary" id="go-on">${texts.button}</button>`;
  return sendInstallerPage(req, 200, {
    title: heading,
    narrow: true,
    body: html`!${backLink(appliancePath(name), title)}<h1>${heading}</h1><p>${texts.text}</p>
!${csrfForm(req.session, appliancePath(name, 'pair'), button)}`,
  });
}

/**
 * Whether a person has opened the label's link, and not another site or a prefetch: the link starts a pairing. After
 * the redirect of `sendUnauthenticated`, a browser that came from another site sends `same-origin`, but no `Referer` of
 * the hub.
 */
function isUserNavigation(request: FastifyRequest): boolean {
  const { method, headers, host, ingress } = request;
  // A printed label leads to the hub's own address.
  if (method !== 'GET' || isPrefetch(request) || ingress !== undefined) return false;
  const site = headers['sec-fetch-site'];
  if (site !== 'same-origin') return site === undefined || site === 'none';
  return URL.parse(headers.referer ?? '')?.host.toLowerCase() === host.toLowerCase();
}
