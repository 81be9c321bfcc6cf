import { html } from 'ghtml';
import { Failure } from '../../core/failure.ts';
import type { Named } from '../../core/name.ts';
import type { NewPortal } from '../../core/portals/portal-administration.ts';
import type { PortalCheck, PortalStatus } from '../../core/portals/portal-status.ts';
import { Secret } from '../../core/secret.ts';
import type { PageSession } from '../../core/setup-access.ts';
import { isLoopbackHost } from '../../system/addresses.ts';
import { afterResponse } from '../../system/http/after-response.ts';
import { createIdempotencyKey, renderApplianceForm } from '../add-appliance/add-appliance.ts';
import type { AdministrationView, PageServices } from '../administration-view.ts';
import { titlesOf } from '../connection-names.ts';
import { icon, withCopyButton } from '../elements.ts';
import { failurePage } from '../failures.ts';
import { renderSelectField, renderTextField } from '../form-field.ts';
import { readQuery } from '../http.ts';
import { backLink, csrfForm, type InstallerPage, sendInstallerPage } from '../installer-page.ts';
import type { PageContext } from '../page-context.ts';
import { portalAddedPath, portalAgainPath } from '../paths.ts';
import type { AuthenticatedRoutes } from '../sign-in/authenticated-routes.ts';
import type { Texts } from '../texts/en.ts';
import { type CloudField, type CloudForm, findCloudForm } from './cloud-form.ts';
import { HELPER_PORTAL, OTHER_CLOUD } from './cloud-list.ts';

/** The most characters of what people enter. */
const MAX_LENGTH = 2000;

/** The form as it was sent: which portal it is about, and what was typed in each field. */
interface TypedPortal {
  readonly cloud: string;
  readonly name: string;
  /** Whether it replaces the data of a portal that was added. */
  readonly again: boolean;
  readonly fields: ReadonlyMap<string, string>;
}

/** Error texts, by field. */
type FieldErrors = Readonly<Record<string, string>>;

/** How often a page that waits for the next hub loads itself again, in s. */
const WAITING_RELOAD_SECONDS = 1;

/** Serves the form that adds a portal, or takes the data of an added one again, and its result. */
export function serveAddPortal(guard: AuthenticatedRoutes, options: PageServices): void {
  const { administration } = options;
  servePortalAdded(guard, options);
  guard.page('/portals/add', async (req) => {
    const query = readQuery(req.request);
    const again = query?.get('again');
    const cloud = again === undefined ? (query?.get('cloud') ?? '') : cloudOf(changeablePortal(again, administration));
    const form = await findCloudForm(cloud, administration, req.context.texts);
    if (form === null) return req.reply.redirect('/portals', 303);
    const titleOf = titlesOf(administration.portals());
    const name = again ?? freeName(form.usualName, administration.portals());
    const entered = again === undefined ? null : await administration.enteredPortal(again);
    const typed = { cloud, name, again: again !== undefined, fields: fieldsOf(entered) };
    return sendInstallerPage(req, 200, addPortalPage(req.context, req.session, form, typed, titleOf, {}));
  });

  guard.form('/portals/add', async (submission) => {
    const { form: sent, context, session } = submission;
    const { texts } = context;
    const cloud = sent.get('cloud') ?? '';
    const form = await findCloudForm(cloud, administration, texts);
    if (form === null) return submission.reply.redirect('/portals', 303);
    const typed = { cloud, name: sent.get('name') ?? '', again: sent.get('again') === 'yes', fields: sent };
    const hasSecret = enteredIn(sent, 'client_secret') !== '';
    const answer = (status: number, problems: FieldErrors) => {
      const all = { ...(hasSecret && { client_secret: texts.portal.secretAgain }), ...problems };
      const page = addPortalPage(context, session, form, typed, titlesOf(administration.portals()), all);
      return sendInstallerPage(submission, status, page);
    };
    const missing = form.fields.filter(({ key, isRequired }) => isRequired && enteredIn(sent, key) === '');
    if (missing.length > 0)
      return answer(400, Object.fromEntries(missing.map(({ key }) => [key, texts.portal.missing])));
    const before = typed.again ? await administration.enteredPortal(typed.name) : null;
    const result = await submission.administration.addPortal(newPortal(form, typed, before));
    if (result.kind === 'client_rejected') return answer(409, { client_id: rejectedText(texts, form, hasSecret) });
    if (result.kind !== 'added') {
      const wrong = form.fields.filter(({ key }) => result.problems.has(key));
      const textOf = (field: CloudField) =>
        result.kind === 'other_address' && field.address !== undefined
          ? texts.portal.otherAddress[field.address]
          : invalidText(texts, field, sent);
      return answer(400, Object.fromEntries(wrong.map((field) => [field.key, textOf(field)])));
    }
    afterResponse(submission.reply.raw, result.reload.start);
    return submission.reply.redirect(
      portalAddedPath({
        cloud,
        name: typed.name,
        check: resultOf(result.checks),
        reload: result.reload.id,
        ...(typed.again && { again: 'yes' }),
      }),
      303,
    );
  });
}

/** Serves the result of the form. This hub does not know the portal yet, so the page waits for the next one. */
function servePortalAdded(guard: AuthenticatedRoutes, { administration, random }: PageServices): void {
  guard.page('/portals/added', async (req) => {
    const { texts } = req.context;
    const query = readQuery(req.request);
    const form = await findCloudForm(query?.get('cloud') ?? '', administration, texts);
    if (form === null) return req.reply.redirect('/portals', 303);
    const { portal } = texts;
    const outcome = administration.reloadOutcome(query?.get('reload') ?? '');
    if (outcome.state === 'under_way') {
      req.reply.header('refresh', WAITING_RELOAD_SECONDS);
      const body = html`<h1>${portal.starting}</h1><p>${portal.startingText}</p>`;
      return sendInstallerPage(req, 200, { title: portal.starting, narrow: true, body });
    }
    if (outcome.state === 'failed') {
      const back = { href: '/portals', text: portal.manage };
      return sendInstallerPage(req, 200, failurePage(portal.notStarted, texts.appliance.failures.other, back));
    }
    const { appliances } = await administration.status();
    const isFirst = administration.portals().length === 1 && appliances.length === 0;
    const applianceForm = isFirst
      ? renderApplianceForm(texts, req.session, createIdempotencyKey(random), { portals: [], connections: [] })
      : null;
    const check = query?.get('check') ?? '';
    const name = query?.get('name') ?? '';
    const again = check === 'unreachable' && form.fields.length > 0 ? portalAgainPath(name) : null;
    const title = titlesOf(administration.portals())(name || form.title);
    const heading = query?.get('again') === 'yes' ? portal.saved(title) : portal.added(title);
    return sendInstallerPage(req, 200, addedPage(texts, heading, check, again, applianceForm));
  });
}

/** What the check of a portal has shown: `accepted`, `unchecked` or `unreachable`. */
function resultOf(checks: readonly PortalCheck[]): string {
  const isResult = (wanted: PortalCheck['name'], result: PortalCheck['result']) =>
    checks.some((check) => check.name === wanted && check.result === result);
  if (isResult('client', 'ok')) return 'accepted';
  return isResult('tls', 'fail') || isResult('discovery', 'fail') ? 'unreachable' : 'unchecked';
}

/** @throws Failure `portal_unknown`; `portal_declared` if the configuration declares it */
export function changeablePortal(
  name: string,
  administration: Pick<AdministrationView, 'describePortals'>,
): PortalStatus {
  const portal = administration.describePortals().find((one) => one.name === name);
  if (portal === undefined) throw new Failure('portal_unknown', name);
  if (portal.added !== true) throw new Failure('portal_declared', name);
  return portal;
}

/** Which form takes the data of a portal. */
function cloudOf({ preset, type }: PortalStatus): string {
  return preset ?? (type === 'helper' ? HELPER_PORTAL : OTHER_CLOUD);
}

/** The first of the names `usual`, `usual-2`, … that no portal has. */
function freeName(usual: string, portals: readonly Named[]): string {
  for (let count = 1; ; count += 1) {
    const name = count === 1 ? usual : `${usual}-${count}`;
    if (!portals.some((portal) => portal.name === name)) return name;
  }
}

function enteredIn(fields: ReadonlyMap<string, string>, key: string): string {
  return (fields.get(key) ?? '').trim();
}

/** The fields of the form with what was entered before. @param keys of the portal's table; null if nothing was */
function fieldsOf(keys: Readonly<Record<string, unknown>> | null): ReadonlyMap<string, string> {
  const variables = Object.entries(keys?.['variables'] ?? {}).map(([name, value]) => [`variables.${name}`, value]);
  return new Map([...Object.entries(keys ?? {}), ...variables].map(([key, value]) => [String(key), String(value)]));
}

/** Why an entry is not valid. */
function invalidText({ portal }: Texts, field: CloudField, fields: ReadonlyMap<string, string>): string {
  const { address } = field;
  if (field.isUuid) return portal.invalidUuid;
  if (address === undefined) return portal.invalid;
  const url = URL.parse(valueIn(fields, field));
  const isSecure = url === null || url.protocol === 'https:' || isLoopbackHost(url.hostname);
  return portal.invalidAddress[isSecure ? address : 'notHttps'];
}

/** Why the portal does not accept the client. */
function rejectedText({ portal }: Texts, { fields }: CloudForm, hasSecret: boolean): string {
  if (fields.every(({ key }) => key !== 'client_id')) return portal.rejectedPreset;
  return hasSecret ? portal.rejected : portal.rejectedWithoutSecret;
}

/** What was entered, as a key of the portal's table. */
function valueIn(fields: ReadonlyMap<string, string>, { key, address }: CloudField): string {
  const entered = enteredIn(fields, key);
  return address === undefined ? entered : withScheme(entered);
}

/** An address as people type it, such as `portal.example`, with the scheme that every cloud has. */
function withScheme(address: string): string {
  return address === '' || address.includes('://') ? address : `https://${address}`;
}

/** @param before the keys of the portal that it replaces; those without a field stay. Null if it replaces none */
function newPortal(
  { keys, fields: known }: CloudForm,
  { name, again, fields }: TypedPortal,
  before: Readonly<Record<string, unknown>> | null,
): NewPortal {
  const entered = known
    .map((field) => [field.key, valueIn(fields, field)] as const)
    .filter(([, value]) => value !== '');
  const isVariable = (key: string) => key.startsWith('variables.');
  const variables = entered.flatMap(([key, value]) =>
    isVariable(key) ? [[key.slice('variables.'.length), value]] : [],
  );
  const plain = entered.filter(([key]) => !isVariable(key) && key !== 'client_secret');
  const secret = enteredIn(fields, 'client_secret');
  return {
    name,
    keys: {
      ...before,
      ...keys,
      ...Object.fromEntries(plain),
      ...(variables.length > 0 && { variables: Object.fromEntries(variables) }),
    },
    clientSecret: secret === '' ? null : new Secret(secret),
    replace: again,
    keepsSecret: again,
  };
}

/** The form: what to do at the cloud, and what to enter here. A secret that was typed is not shown again. */
function addPortalPage(
  { texts }: PageContext,
  session: PageSession,
  { title, fields, registerUrl, steps, redirectUri }: CloudForm,
  { cloud, name, again, fields: typed }: TypedPortal,
  titleOf: (name: string) => string,
  problems: FieldErrors,
): InstallerPage {
  const { portal } = texts;
  const heading = again ? portal.againHeading(titleOf(name)) : portal.addHeading(title);
  const rendered = fields.map(({ key, label, hint, usual, values, isCopied, isRequired }) => {
    const value = key === 'client_secret' ? '' : (typed.get(key) ?? usual);
    const shown = again && key === 'client_secret' && !isRequired ? portal.secretKeptHint : hint;
    const field = { id: key, label, hint: shown, problem: problems[key], copied: isCopied && texts };
    const options = values?.map((one) => ({ value: one, text: one }));
    return options === undefined
      ? renderTextField(field, value, false, MAX_LENGTH)
      : renderSelectField(field, key, options, value);
  });
  const others = Object.entries(problems).filter(([key]) => !fields.some((field) => field.key === key));
  const content = html`<input type="hidden" name="cloud" value="${cloud}"><input type="hidden" name="name" value="${name}">
!${again ? html`<input type="hidden" name="again" value="yes">` : ''}
!${others.map(([, text]) => html`<p class="problem" role="alert">${text}</p>`)}
!${rendered}
<div class="actions"><button class="primary" id="submit">${again ? portal.save : portal.add}</button></div>`;
  const items = steps.map(
    (step) => html`<li>${step.replaceAll('{redirect_uri}', redirectUri ?? portal.redirectBelow)}</li>`,
  );
  const atCloud = html`<h2>${portal.registerHeading}</h2>
!${registerUrl === null ? '' : html`<p><a class="back" href="${registerUrl}" target="_blank" rel="noopener noreferrer">${portal.registerAt}</a></p>`}
!${items.length === 0 ? '' : html`<ol class="steps">!${items}</ol>`}
!${renderRedirectUri(texts, redirectUri)}
<h2>${portal.enterHeading}</h2>`;
  const nothingToRegister = fields.length === 0 ? html`<p>${portal.nothingToRegister}</p>` : '';
  return {
    title: heading,
    narrow: true,
    body: html`!${backLink('/portals', portal.manage)}
<h1>${heading}</h1>
!${registerUrl === null && redirectUri === null ? nothingToRegister : atCloud}
!${csrfForm(session, '/portals/add', content, 'fields')}`,
  };
}

/** The redirect URI to register, with a button that copies it. */
function renderRedirectUri(texts: Texts, redirectUri: string | null): string {
  if (redirectUri === null) return '';
  return html`<div class="field"><span class="label" id="redirect-label">${texts.portal.redirect}</span>
!${withCopyButton(texts, html`<code class="value" id="redirect">${redirectUri}</code>`, 'redirect', 'redirect-label')}
<p class="hint">${texts.portal.redirectHint}</p></div>`;
}

/**
 * Says that a portal was added, or its data saved, and what the check has found.
 * @param check see {@link resultOf}
 * @param again the path of the form that takes the data again; null if there is nothing to correct
 * @param applianceForm the form for the first appliance, as HTML; null if the hub had a portal or an appliance before
 */
function addedPage(
  { portal, adding, installer }: Texts,
  heading: string,
  check: string,
  again: string | null,
  applianceForm: string | null,
): InstallerPage {
  const severity = check === 'accepted' ? 'good' : 'warn';
  const text = check === 'accepted' ? portal.accepted : check === 'unreachable' ? portal.unreachable : portal.unchecked;
  return {
    title: heading,
    narrow: true,
    body: html`<div class="health">!${icon('good')}<h1>${heading}</h1></div>
<p class="notice ${severity}">!${icon(severity)}<span>${text}</span></p>
!${again === null ? '' : html`<div class="actions"><a class="button" id="again" href="${again}">${portal.again}</a></div>`}
!${applianceForm === null ? html`<div class="actions"><a class="button primary" href="/">${installer.overview}</a><a class="button" id="add" href="/appliances/add">${adding.title}</a></div>` : html`<h2>${adding.title}</h2>!${applianceForm}`}`,
  };
}
