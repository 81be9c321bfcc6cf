import { html } from 'ghtml';
import type { CloudChoice } from '../../core/portals/portal-administration.ts';
import type { PortalStatus } from '../../core/portals/portal-status.ts';
import { afterResponse } from '../../system/http/after-response.ts';
import type { PageServices } from '../administration-view.ts';
import { renderRows } from '../appliance/appliance-fragments.ts';
import { confirmationPage } from '../appliance/confirmations.ts';
import { titlesOf } from '../connection-names.ts';
import { pathParameter } from '../http.ts';
import { backLink, type InstallerPage, sendInstallerPage } from '../installer-page.ts';
import { addPortalPath } from '../paths.ts';
import type { AuthenticatedRoutes } from '../sign-in/authenticated-routes.ts';
import type { Texts } from '../texts/en.ts';
import { assertChangeable, serveAddPortal } from './add-portal.ts';
import { HELPER_PORTAL, OTHER_CLOUD, renderCloudList } from './cloud-list.ts';

/** Serves the list of the portals, and the forms that add and remove one. */
export function servePortals(guard: AuthenticatedRoutes, options: PageServices): void {
  const { administration } = options;
  serveAddPortal(guard, options);
  guard.page('/portals', async (req) => {
    const { clouds } = await administration.cloudChoices();
    const described = new Map(administration.describePortals().map((one) => [one.name, one]));
    const cards = administration.portals().flatMap(({ title, address, name }) => {
      const portal = described.get(name);
      return portal === undefined ? [] : renderPortal(req.context.texts, portal, title, address);
    });
    return sendInstallerPage(req, 200, portalsPage(req.context.texts, cards, clouds));
  });
  guard.page('/portals/:name/remove', async (req) => {
    const { context, session } = req;
    const name = pathParameter(req, 'name');
    assertChangeable(name, administration);
    const confirmation = {
      heading: context.texts.portal.removeHeading(titlesOf(administration.portals())(name)),
      text: context.texts.portal.removeText,
      action: removalPath(name),
      confirmLabel: context.texts.appliance.remove,
      cancelHref: '/portals',
    };
    return sendInstallerPage(req, 200, confirmationPage(confirmation, context, session));
  });
  guard.form('/portals/:name/remove', async (submission) => {
    const { start } = await submission.administration.removePortal(pathParameter(submission, 'name'));
    afterResponse(submission.reply.raw, start);
    return submission.reply.redirect('/', 303);
  });
}

function removalPath(name: string): string {
  return `/portals/${encodeURIComponent(name)}/remove`;
}

/** The portals of the hub, and the clouds that can be added. @param cards of the portals, as HTML */
function portalsPage(texts: Texts, cards: readonly string[], clouds: readonly CloudChoice[]): InstallerPage {
  const { portal, installer } = texts;
  return {
    title: portal.manage,
    body: html`!${backLink('/', installer.overview)}
<h1>${portal.manage}</h1>
!${cards.length === 0 ? html`<h2>${portal.choose}</h2><p>${portal.chooseText}</p>` : html`<ul class="cards">!${cards}</ul><h2>${portal.chooseAnother}</h2>`}
!${renderCloudList(texts, clouds)}`,
  };
}

function renderPortal(
  texts: Texts,
  { name, type, preset, added, login, redirectUri }: PortalStatus,
  title: string,
  address: string,
): string {
  const { portal, appliance } = texts;
  const cloud = preset ?? (type === 'helper' ? HELPER_PORTAL : OTHER_CLOUD);
  const rows = [
    ...(preset === undefined ? [[portal.address, html`${address}`] as const] : []),
    [portal.login, html`${login === null ? portal.loginUnknown : portal.logins[login]}`] as const,
    ...(redirectUri === null ? [] : [[portal.redirect, html`<code>${redirectUri}</code>`] as const]),
  ];
  const actions = html`<div class="actions"><a class="button" id="again-${name}" href="${addPortalPath(cloud, name)}">${portal.again}</a><a class="button danger" id="remove-${name}" href="${removalPath(name)}">${appliance.remove}</a></div>`;
  return html`<li class="card" id="portal-${name}"><h2>${title}</h2>
<dl class="facts">!${renderRows(rows)}</dl>
!${added === true ? actions : html`<p class="quiet">${portal.declared}</p>`}</li>`;
}
