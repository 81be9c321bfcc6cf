import { html } from 'ghtml';
import type { Administration, ApplianceStatus, HubStatus } from '../../core/administration.ts';
import type { PageSession } from '../../core/setup-access.ts';
import { facts, nextAction, standingParts } from '../appliance/appliance-parts.ts';
import { appliancePath } from '../appliance/appliance-path.ts';
import { type Standing, standingOf } from '../appliance/standing.ts';
import type { Frame } from '../frame.ts';
import { type InstallerPage, ownForm } from '../installer-page.ts';
import { type Mood, sign } from '../signs.ts';
import type { Texts } from '../texts/en.ts';
import { timeElement } from '../times.ts';
import { healthOf } from './health.ts';

/** What `status` says of the hub and its appliances. */
export type Status = Awaited<ReturnType<Administration['status']>>;

/** What needs a person stands first. */
const ORDER: readonly Mood[] = ['bad', 'warn', 'waiting', 'neutral', 'good'];

/** Seconds after which a page is looked at again where scripts are off and somebody is about to log in. */
const RELOAD_WHILE_WAITING = 10;

/** Appliances on one page: with more of them it would be too heavy for a phone in a cellar. */
const MOST_SHOWN = 60;

/**
 * The first page: how the hub is, and each appliance.
 * @param portals the names of the configured ones
 * @param now the hub's wall clock, in ms since 1970
 * @param wanted which page of many appliances, from 1 on; the last one where there are not so many
 */
export function overviewPage(
  status: Status,
  { texts }: Frame,
  session: PageSession,
  portals: readonly string[],
  now: number,
  wanted = 1,
): InstallerPage {
  const { overview } = texts;
  const { hub, notices } = status;
  const noticesOf = Map.groupBy(notices, ({ appliance }) => appliance);
  const appliances = status.appliances
    .map((appliance) => {
      const { name } = appliance;
      return { name, appliance, standing: standingOf(appliance, noticesOf.get(name) ?? [], texts) };
    })
    .toSorted((a, b) => ORDER.indexOf(a.standing.mood) - ORDER.indexOf(b.standing.mood));
  const { mood, sentence } = healthOf(appliances, (hub.problems ?? []).length > 0, texts);
  const isWaiting = hub.registrationOpenFor !== undefined || status.appliances.some(({ state }) => state === 'pairing');
  const pages = Math.max(1, Math.ceil(appliances.length / MOST_SHOWN));
  const page = Math.min(wanted, pages);
  const cards = appliances
    .slice((page - 1) * MOST_SHOWN, page * MOST_SHOWN)
    .map(({ appliance, standing }) => card(texts, session, appliance, standing, portals.length > 1, now));
  const list = html`<section class="stack" aria-labelledby="appliances"><h2 id="appliances">${overview.appliances}</h2>
<ul class="cards">!${cards}</ul>!${otherPages(texts, page, pages)}</section>`;
  return {
    title: overview.title,
    now,
    live: true,
    ...(isWaiting && { reloadAfter: RELOAD_WHILE_WAITING }),
    body: html`<div class="health" role="status">!${sign(mood)}<h1 id="health">${sentence}</h1></div>
!${hubNotices(texts, hub)}
!${severalAsked(texts, hub)}
!${cards.length === 0 ? html`<p>${overview.firstOne}</p>` : ''}
!${actions(texts, session, status.appliances)}
!${cards.length === 0 ? '' : list}
!${registration(texts, session, hub, now)}
<p><a class="back" href="/pair">${overview.code}</a></p>
<p><a class="back" id="browsers" href="/browsers">${texts.browsers.link}</a></p>
!${about(texts, hub)}`,
  };
}

/** The ways to the other pages, where one does not hold all appliances. */
function otherPages({ overview }: Texts, page: number, pages: number): string {
  if (pages === 1) return '';
  const link = (to: number, text: string, id: string) =>
    to < 1 || to > pages
      ? ''
      : html`<a class="button" id="${id}" href="${to === 1 ? '/' : `/?page=${to}`}">${text}</a>`;
  return html`<nav class="stack" aria-label="${overview.pages}"><p class="quiet">${overview.page(page, pages)}</p>
<div class="actions">!${link(page - 1, overview.previousPage, 'previous')}!${link(page + 1, overview.nextPage, 'next')}</div></nav>`;
}

function card(
  texts: Texts,
  session: PageSession,
  appliance: ApplianceStatus,
  standing: Standing,
  several: boolean,
  now: number,
): string {
  const { name } = appliance;
  return html`<li class="card ${standing.needsPerson ? 'bad' : ''}" id="appliance-${name}">
<h3><a href="${appliancePath(name)}" id="open-${name}">${name}</a></h3>
!${standingParts(texts, standing, false)}
!${nextAction(texts, session, appliance, standing)}
!${facts(texts, appliance, several, now)}</li>`;
}

function hubNotices({ states, overview }: Texts, { problems }: HubStatus): string {
  if (problems === undefined || problems.length === 0) return '';
  const each = problems.map(
    ({ code }) => html`<p class="notice bad">!${sign('bad')}<span>${states.hub[code]}</span></p>`,
  );
  return html`<section class="stack" aria-label="${overview.notices}">!${each}</section>`;
}

/** Among several that asked there may be one that nobody in the house has set up. */
function severalAsked({ overview }: Texts, { registrationAsked = 0 }: HubStatus): string {
  if (registrationAsked < 2) return '';
  return html`<p class="notice bad" id="several-asked">!${sign('bad')}<span>${overview.severalAsked(registrationAsked)}</span></p>`;
}

function actions({ overview }: Texts, session: PageSession, appliances: readonly ApplianceStatus[]): string {
  const open = appliances.filter(
    ({ state, waitingForApproval }) =>
      waitingForApproval === undefined && (state === 'unpaired' || state === 'pairing' || state === 'needs_pairing'),
  );
  const add = html`<a class="button ${appliances.length === 0 ? 'primary' : ''}" id="add" href="/appliances/add">${overview.add}</a>`;
  if (open.length < 2) return html`<div class="actions">!${add}</div>`;
  const all = ownForm(
    session,
    '/pair-all',
    html`<button class="primary" id="pair-all">${overview.connectAll}</button>`,
  );
  return html`<div class="stack"><div class="actions">!${all}!${add}</div><p class="hint">${overview.connectAllHint}</p></div>`;
}

function registration(texts: Texts, session: PageSession, { registrationOpenFor }: HubStatus, now: number): string {
  const { overview } = texts;
  const button = (path: string, text: string) =>
    html`<div class="actions">!${ownForm(session, path, html`<button id="registration">${text}</button>`)}</div>`;
  const isOpen = registrationOpenFor !== undefined;
  const content = isOpen
    ? html`<p>${overview.registrationOpen} !${timeElement(texts, now + registrationOpenFor * 1000, now)}. ${overview.registrationOpenHint}</p>
!${button('/registration/close', overview.closeRegistration)}`
    : html`<p class="quiet">${overview.registrationHint}</p>!${button('/registration/open', overview.openRegistration)}`;
  return html`<details id="registration-part" !${isOpen ? 'open' : ''}><summary>${overview.registration}</summary>
!${content}</details>`;
}

function about({ overview }: Texts, { version, address, caFingerprint }: HubStatus): string {
  return html`<details id="about"><summary>${overview.about}</summary>
<dl class="facts"><div><dt>${overview.version}</dt><dd>${version}</dd></div>
<div><dt>${overview.address}</dt><dd>${address ?? overview.noAddress}</dd></div>
<div><dt>${overview.pin}</dt><dd><code>${caFingerprint}</code></dd></div></dl></details>`;
}
