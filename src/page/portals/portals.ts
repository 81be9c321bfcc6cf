import { html } from 'ghtml';
import type { ConnectionStatus } from '../../core/connections/connection-status.ts';
import { Failure } from '../../core/failure.ts';
import type { CloudChoice } from '../../core/portals/portal-administration.ts';
import type { PortalStatus } from '../../core/portals/portal-status.ts';
import { afterResponse } from '../../system/http/after-response.ts';
import type { PageServices } from '../administration-view.ts';
import { renderRows } from '../appliance/appliance-fragments.ts';
import { confirmationPage } from '../appliance/confirmations.ts';
import { joinTitles, titlesOf } from '../connection-names.ts';
import { icon } from '../elements.ts';
import { isClientRejected } from '../health.ts';
import { pathParameter } from '../http.ts';
import { backLink, type InstallerPage, sendInstallerPage } from '../installer-page.ts';
import { portalAgainPath } from '../paths.ts';
import type { AuthenticatedRoutes } from '../sign-in/authenticated-routes.ts';
import type { Texts } from '../texts/en.ts';
import { changeablePortal, serveAddPortal } from './add-portal.ts';
import { renderCloudList } from './cloud-list.ts';

/** Serves the list of the portals, and the forms that add and remove one. */
export function servePortals(guard: AuthenticatedRoutes, options: PageServices): void {
  const { administration } = options;
  serveAddPortal(guard, options);
  guard.page('/portals', async (req) => {
    const { clouds } = await administration.cloudChoices();
    const { connections, conditions } = await administration.status();
    const codes = Map.groupBy(conditions, ({ connection }) => connection);
    const described = new Map(administration.describePortals().map((one) => [one.name, one]));
    const cards = administration.portals().flatMap(({ title, address, name }) => {
      const portal = described.get(name);
      const used = connections.filter((one) => one.portal === name);
      const isRejected = used.some((one) =>
        codes.get(one.name)?.some(({ code }) => isClientRejected(code, one.pairingFailed)),
      );
      return portal === undefined ? [] : renderPortal(req.context.texts, portal, { title, address, used, isRejected });
    });
    return sendInstallerPage(req, 200, portalsPage(req.context.texts, cards, clouds));
  });
  guard.page('/portals/:name/remove', async (req) => {
    const { context, session } = req;
    const name = pathParameter(req, 'name');
    changeablePortal(name, administration);
    const { connections } = await administration.status();
    if (connections.some(({ portal }) => portal === name)) throw new Failure('portal_in_use', name);
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

/** What the hub does at a portal: its connections there, and whether the portal rejects the hub's credentials. */
interface PortalUse {
  readonly used: readonly ConnectionStatus[];
  readonly isRejected: boolean;
}

function renderPortal(
  texts: Texts,
  { name, preset, added, login, redirectUri }: PortalStatus,
  { title, address, used, isRejected }: PortalUse & { readonly title: string; readonly address: string },
): string {
  const { portal, appliance, connection, states } = texts;
  const rows = [
    ...(preset === undefined ? [[portal.address, html`${address}`] as const] : []),
    [portal.login, html`${login === null ? portal.loginUnknown : portal.logins[login]}`] as const,
    ...(redirectUri === null ? [] : [[portal.redirect, html`<code>${redirectUri}</code>`] as const]),
  ];
  const users = used.map((one) => ({ ...one, title: one.own ? one.title : connection.title(one.title) }));
  const remove =
    users.length === 0
      ? html`<a class="button danger" id="remove-${name}" href="${removalPath(name)}">${appliance.remove}</a>`
      : html`<p class="hint">${portal.inUse(joinTitles(users, texts))}</p>`;
  const actions = html`<div class="actions"><a class="button ${isRejected ? 'primary' : ''}" id="again-${name}" href="${portalAgainPath(name)}">${portal.again}</a>!${remove}</div>`;
  const problem = html`<p class="state bad">!${icon('bad')}<span>${states.conditions.misconfigured()}</span></p>`;
  return html`<li class="card ${isRejected ? 'bad' : ''}" id="portal-${name}"><h2>${title}</h2>!${isRejected ? problem : ''}
<dl class="facts">!${renderRows(rows)}</dl>
!${added === true ? actions : html`<p class="quiet">${portal.declared}</p>`}</li>`;
}
