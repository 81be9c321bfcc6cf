import type { FastifyReply, FastifyRequest } from 'fastify';
import { html } from 'ghtml';
import type { PairingAdministration } from '../../core/pairings/pairing-administration.ts';
import { labelSvg } from '../../system/label.ts';
import { handlePairingFailures } from '../failures.ts';
import { backLink, csrfForm, type InstallerPage, sendInstallerPage } from '../installer-page.ts';
import { appliancePath, pairingPath } from '../paths.ts';
import { isPrefetch } from '../request-origin.ts';
import { type AuthenticatedRequest, type AuthenticatedRoutes, pathParameter } from '../sign-in/authenticated-routes.ts';

/** The label of an appliance, to be printed, and where its link leads. */
export function servePrintedLabels(guard: AuthenticatedRoutes, administration: PairingAdministration): void {
  guard.page('/appliances/:name/label', (asked) =>
    handlePairingFailures(asked, async () => {
      const { addressLink: otherLink, ...label } = administration.label(pathParameter(asked, 'name'));
      const { caption } = asked.context.texts.pairing.label;
      return sendInstallerPage(asked, 200, labelPage(asked, label.name, labelSvg({ ...label, caption, otherLink })));
    }),
  );
  guard.page('/p/:name', (asked) =>
    handlePairingFailures(asked, async () => {
      const { name } = administration.label(pathParameter(asked, 'name'));
      if (!isUserNavigation(asked.request)) return sendPairingConfirmation(asked, name);
      const id = await administration.getOrStartPairing(name);
      return asked.reply.header('cache-control', 'no-store').redirect(pairingPath(id), 303);
    }),
  );
}

/** The label as it is printed: of this page the printer gets nothing else. */
function labelPage({ context }: AuthenticatedRequest, name: string, svg: string): InstallerPage {
  const { label: texts } = context.texts.pairing;
  return {
    title: texts.title(name),
    narrow: true,
    body: html`!${backLink(appliancePath(name), name)}
<h1>${texts.title(name)}</h1>
<p>${texts.what}</p>
<div class="door-label">!${svg}</div>
<p class="hint">${texts.paper}</p>
<div class="actions"><button type="button" class="primary" data-print hidden>${texts.print}</button></div>`,
  };
}

function sendPairingConfirmation(asked: AuthenticatedRequest, name: string): FastifyReply {
  const { label: texts } = asked.context.texts.pairing;
  const heading = texts.heading(name);
  const button = html`<button class="primary" id="go-on">${texts.button}</button>`;
  return sendInstallerPage(asked, 200, {
    title: heading,
    narrow: true,
    body: html`!${backLink(appliancePath(name), name)}<h1>${heading}</h1><p>${texts.text}</p>
!${csrfForm(asked.session, appliancePath(name, 'pair'), button)}`,
  });
}

/**
 * Whether a person has opened the label's link, and not another site, or a browser on its own: opening it begins a pairing.
 * Whoever was led here by another site comes a second time from the hub's own address, but from no page of it.
 */
function isUserNavigation(request: FastifyRequest): boolean {
  const { method, headers, host } = request;
  if (method !== 'GET' || isPrefetch(request)) return false;
  const site = headers['sec-fetch-site'];
  if (site !== 'same-origin') return site === undefined || site === 'none';
  return URL.parse(headers.referer ?? '')?.host.toLowerCase() === host.toLowerCase();
}
