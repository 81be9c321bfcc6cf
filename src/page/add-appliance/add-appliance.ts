import { html } from 'ghtml';
import type { ConnectionStatus } from '../../core/connections/connection-status.ts';
import { checkScope } from '../../core/connections/scope.ts';
import { Failure, type FailureCode } from '../../core/failure.ts';
import { checkTitle, type Named } from '../../core/name.ts';
import type { Random } from '../../core/random.ts';
import type { PageSession } from '../../core/setup-access.ts';
import type { PageServices } from '../administration-view.ts';
import { renderConnectionChoice, renderPortalChoice, sharableConnections } from '../appliance/connection-choice.ts';
import { renderTextField } from '../form-field.ts';
import { readQuery } from '../http.ts';
import { backLink, csrfForm, type InstallerPage, sendInstallerPage } from '../installer-page.ts';
import type { AuthenticatedRequest, PageContext } from '../page-context.ts';
import { credentialsPath } from '../paths.ts';
import type { AuthenticatedRoutes } from '../sign-in/authenticated-routes.ts';
import type { Texts } from '../texts/en.ts';

/** Serves the form that adds an appliance. */
export function serveAddAppliance(guard: AuthenticatedRoutes, { administration, random, issued }: PageServices): void {
  async function send(
    req: AuthenticatedRequest,
    status: number,
    token: string,
    typed: ApplianceForm,
    problems: FieldErrors,
  ) {
    const choices = {
      portals: administration.portals(),
      connections: sharableConnections(await administration.status()),
    };
    return sendInstallerPage(req, status, addAppliancePage(req.context, req.session, token, choices, typed, problems));
  }

  guard.page('/appliances/add', async (req) => {
    // The overview has the clouds to choose from.
    if (administration.portals().length === 0) return req.reply.redirect('/', 303);
    const connection = readQuery(req.request)?.get('login') ?? '';
    return send(req, 200, createIdempotencyKey(random), { ...EMPTY_FORM, connection }, {});
  });

  guard.form('/appliances/add', async (submission) => {
    const { form, reply, session, context } = submission;
    if (administration.portals().length === 0) return reply.redirect('/', 303);
    const connection = form.get('connection') ?? '';
    const typed: ApplianceForm = {
      name: (form.get('name') ?? '').trim(),
      connection,
      scope: form.get('scope') ?? '',
      portal: form.get('portal') ?? '',
    };
    // An existing connection has its own.
    const login = connection === '' ? typed : { ...typed, scope: '', portal: '' };
    const token = readIdempotencyKey(form) ?? createIdempotencyKey(random);
    const portals = connection === '' ? administration.portals() : [];
    const problems = validateLogin(login, portals, context.texts);
    if (Object.keys(problems).length > 0) return send(submission, 400, token, typed, problems);
    try {
      const { name, scope, portal } = login;
      await issued.getOrRun(session, token, name, async () => ({
        credentials: await submission.administration.addAppliance(name, {
          connections: connection === '' ? [] : [connection],
          scope: scope || null,
          portal: portal || null,
        }),
        isNewAppliance: true,
      }));
      return reply.redirect(credentialsPath(token, name), 303);
    } catch (error) {
      const problem = error instanceof Failure ? fieldErrorsFor(error.code, context.texts) : null;
      if (problem === null) throw error;
      return send(submission, 400, token, typed, problem);
    }
  });
}

/** A key for a form that issues credentials: the hub issues them once, however often the form is sent. */
export function createIdempotencyKey(random: Random): string {
  return random.token(16);
}

/** The idempotency key of a form; null if it is missing or malformed. */
export function readIdempotencyKey(form: ReadonlyMap<string, string>): string | null {
  const token = form.get('form') ?? '';
  return /^[\w-]{22}$/.test(token) ? token : null;
}

const EMPTY_FORM: ApplianceForm = { name: '', connection: '', scope: '', portal: '' };

/**
 * Checks the fields of a form that adds an appliance or a connection.
 * @param portals those to choose from
 * @returns error texts, by field
 */
export function validateLogin(
  { name, scope, portal }: { readonly name: string; readonly scope: string; readonly portal: string },
  portals: readonly Named[],
  { adding }: Texts,
): Partial<Record<'name' | 'scope' | 'portal', string>> {
  return {
    ...(name === '' && { name: adding.nameMissing }),
    ...(name !== '' && !isValid(() => checkTitle('appliance', name)) && { name: adding.nameInvalid }),
    ...(!isValid(() => checkScope(scope)) && { scope: adding.scopeInvalid }),
    ...(portal === '' && portals.length > 1 && { portal: adding.portalMissing }),
    ...(portal !== '' && !portals.some(({ name: one }) => one === portal) && { portal: adding.portalUnknown }),
  };
}

function isValid(check: () => unknown): boolean {
  try {
    check();
    return true;
  } catch (error) {
    if (error instanceof Failure) return false;
    throw error;
  }
}

/** The error of a failure, at the field of a form that adds an appliance or a connection; null if no field caused it. */
export function fieldErrorsFor(code: FailureCode, { adding, connectionChoice }: Texts): FieldErrors | null {
  switch (code) {
    case 'appliance_exists':
      return { name: adding.nameTaken };
    case 'connection_exists':
      return { name: connectionChoice.nameIsLogin };
    case 'connection_unknown':
      return { connection: connectionChoice.gone };
    case 'name_invalid':
      return { name: adding.nameInvalid };
    case 'scope_invalid':
      return { scope: adding.scopeInvalid };
    case 'portal_unknown':
      return { portal: adding.portalUnknown };
    default:
      return null;
  }
}

/** The fields of the form, as typed. */
interface ApplianceForm {
  readonly name: string;
  /** Empty for a connection of its own, which has `scope` and `portal`. */
  readonly connection: string;
  readonly scope: string;
  readonly portal: string;
}

/** What a person can choose from. */
interface ApplianceChoices {
  /** The configured portals, the default one first. */
  readonly portals: readonly Named[];
  readonly connections: readonly ConnectionStatus[];
}

/** Error texts, by field. */
type FieldErrors = Partial<Record<keyof ApplianceForm, string>>;

/** The page with the form that adds an appliance. */
export function addAppliancePage(
  { texts }: PageContext,
  session: PageSession,
  token: string,
  choices: ApplianceChoices,
  typed: ApplianceForm,
  problems: FieldErrors,
): InstallerPage {
  return {
    title: texts.adding.title,
    narrow: true,
    body: html`!${backLink('/', texts.installer.overview)}
<h1>${texts.adding.title}</h1>
!${renderApplianceForm(texts, session, token, choices, typed, problems)}`,
  };
}

/**
 * The form that adds an appliance.
 * @param token the idempotency key: a form that is sent twice adds one appliance
 * @returns HTML
 */
export function renderApplianceForm(
  texts: Texts,
  session: PageSession,
  token: string,
  { portals, connections }: ApplianceChoices,
  typed: ApplianceForm = EMPTY_FORM,
  problems: FieldErrors = {},
): string {
  const { adding, connectionChoice } = texts;
  const isScopeFocused = problems.scope !== undefined && problems.name === undefined;
  const name = { id: 'name', label: adding.name, hint: adding.nameHint, problem: problems.name };
  const scope = { id: 'scope', label: adding.scope, hint: adding.scopeHint, problem: problems.scope, onlyForOwn: true };
  const portal = { id: 'portal', label: adding.portal, hint: null, problem: problems.portal, onlyForOwn: true };
  const login = { selected: typed.connection, hint: connectionChoice.hint, problem: problems.connection };
  const content = html`<input type="hidden" name="form" value="${token}">
!${renderTextField(name, typed.name, !isScopeFocused)}
!${connections.length === 0 ? '' : renderConnectionChoice(texts, 'connection', connections, login)}
!${renderPortalChoice(portal, portals, typed.portal, texts)}
!${renderTextField(scope, typed.scope, isScopeFocused)}
<div class="actions"><button class="primary" id="submit">${adding.add}</button></div>`;
  return csrfForm(session, '/appliances/add', content, 'fields');
}
