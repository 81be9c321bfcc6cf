import { isIP } from 'node:net';
import { html } from 'ghtml';
import { Failure } from '../../core/failure.ts';
import type { Named } from '../../core/name.ts';
import type { PageSession } from '../../core/setup-access.ts';
import { findAppliance, type PageServices } from '../administration-view.ts';
import { confirmationPage, secretRotationConfirmation } from '../appliance/confirmations.ts';
import { connectableConnections, usedConnections } from '../appliance/connection-choice.ts';
import { icon, qrSvg, withCopyButton } from '../elements.ts';
import { failurePage } from '../failures.ts';
import { pathParameter } from '../http.ts';
import { csrfForm, type InstallerPage, sendInstallerPage } from '../installer-page.ts';
import type { AuthenticatedRequest, PageContext } from '../page-context.ts';
import { addAppliancePath, appliancePath, connectionPath, credentialsPath } from '../paths.ts';
import type { IssuedByForm } from '../sent-forms.ts';
import type { AuthenticatedRoutes } from '../sign-in/authenticated-routes.ts';
import { createIdempotencyKey, readIdempotencyKey } from './add-appliance.ts';

/** Serves the rotation of an appliance's secret, and the page that shows issued credentials. */
export function serveCredentials(guard: AuthenticatedRoutes, { administration, random, issued }: PageServices): void {
  function sendConfirmation(
    req: AuthenticatedRequest,
    status: number,
    appliance: Named,
    token: string,
    keys: 'none' | 'asked' | 'missing',
  ) {
    const confirmation = secretRotationConfirmation(req.context.texts, appliance, token, keys);
    return sendInstallerPage(req, status, confirmationPage(confirmation, req.context, req.session));
  }

  guard.page('/appliances/:name/rotate-secret', async (req) => {
    const { appliance } = await findAppliance(req, administration);
    if (appliance.declared) throw new Failure('appliance_declared', appliance.name);
    return sendConfirmation(req, 200, appliance, createIdempotencyKey(random), 'none');
  });

  guard.form('/appliances/:name/rotate-secret', async (submission) => {
    const name = pathParameter(submission, 'name');
    const { form, session, reply } = submission;
    const token = readIdempotencyKey(form) ?? createIdempotencyKey(random);
    try {
      await issued.getOrRun(session, token, name, async () => ({
        credentials: await submission.administration.rotateSecret(name, form.get('replace_keys') === 'yes'),
        isNewAppliance: false,
      }));
      return reply.redirect(credentialsPath(token, name), 303);
    } catch (error) {
      if (!(error instanceof Failure && error.code === 'appliance_has_keys')) throw error;
      const { appliance } = await findAppliance(submission, administration);
      return sendConfirmation(submission, 409, appliance, token, form.has('asked_keys') ? 'missing' : 'asked');
    }
  });

  guard.page('/credentials/:form/:name', async (req) => {
    const { context, session } = req;
    const [form, name] = [pathParameter(req, 'form'), pathParameter(req, 'name')];
    const found = await issued.find(session, form, name);
    if (found !== null) {
      const done = `${credentialsPath(form, name)}/done`;
      const status = await administration.status();
      const appliance = status.appliances.find((one) => one.name === found.credentials.name);
      const isConnected = appliance?.state === 'active' || appliance?.state === 'retrying';
      const used = appliance === undefined ? [] : usedConnections(appliance, status.connections);
      const login = used.find((one) => one.name === appliance?.connection);
      const shown = {
        connected: isConnected && login !== undefined ? login.title : null,
        hasOthers: connectableConnections(status).length > 1,
        sharedLogin: login?.own === true ? '' : (login?.name ?? ''),
        used,
      };
      return sendInstallerPage(req, 200, credentialsPage(found, context, session, done, shown));
    }
    const { adding, appliance } = context.texts;
    const back = { href: '/', text: appliance.backToOverview };
    return sendInstallerPage(req, 410, failurePage(adding.credentials.gone, adding.credentials.goneText, back));
  });

  guard.form('/credentials/:form/:name/done', async (submission) => {
    const name = pathParameter(submission, 'name');
    issued.delete(submission.session, pathParameter(submission, 'form'), name);
    const { form } = submission;
    const next = form.get('next') === 'add' ? addAppliancePath(form.get('login') || undefined) : appliancePath(name);
    return submission.reply.redirect(next, 303);
  });
}

/** What the page of credentials shows of the appliance's connections. */
interface ShownConnection {
  /** Its title, if it is connected already; otherwise null. */
  readonly connected: string | null;
  /** Whether other connections also wait to be connected. */
  readonly hasOthers: boolean;
  /** Its name, if several appliances can share it: probably the next one does. Empty for an appliance's own. */
  readonly sharedLogin: string;
  /** All of them: each of several has a token endpoint of its own. */
  readonly used: readonly Named[];
}

const OWN_CONNECTION: ShownConnection = { connected: null, hasOthers: false, sharedLogin: '', used: [] };

/**
 * The credentials of an appliance, for a person to enter in it. The QR code contains what `latchkey appliance add
 * --json` prints.
 * @param done the path of the form for "Done"
 */
export function credentialsPage(
  { credentials: issued, isNewAppliance }: IssuedByForm,
  { texts }: PageContext,
  session: PageSession,
  done: string,
  { connected, hasOthers, sharedLogin, used }: ShownConnection = OWN_CONNECTION,
): InstallerPage {
  const { credentials } = texts.adding;
  const { name, title, clientId, clientSecret, tokenEndpoint, caFingerprint } = issued;
  const all = {
    name,
    title,
    client_id: clientId,
    client_secret: clientSecret.reveal(),
    token_endpoint: tokenEndpoint,
    ca_fingerprint: caFingerprint,
  };
  const row = (
    id: string,
    label: string,
    value: string,
    hint = '',
  ) => html`<div class="field"><span class="label" id="${id}-label">${label}</span>
!${withCopyButton(texts, html`<code class="value" id="${id}">${value}</code>`, id, `${id}-label`)}!${hint === '' ? '' : html`<p class="hint">${hint}</p>`}</div>`;
  const { origin, hostname } = new URL(tokenEndpoint);
  // The appliance keeps what a person enters, so an address that the router may change must stay.
  const addressHint = isIP(hostname) === 0 ? '' : credentials.addressHint;
  const endpoints =
    used.length > 1
      ? used.map(({ name: login, title: loginTitle }) => ({
          id: `token-endpoint-${login}`,
          label: `${credentials.tokenEndpoint}: ${loginTitle}`,
          url: `${origin}${connectionPath(login, 'oauth/token')}`,
        }))
      : [{ id: 'token-endpoint', label: credentials.tokenEndpoint, url: tokenEndpoint }];
  const needsLogin = isNewAppliance && connected === null;
  const doneButton = html`<button class="${needsLogin ? '' : 'primary'}" id="done">${credentials.done}</button>`;
  const another = html`<input type="hidden" name="login" value="${sharedLogin}"><button name="next" value="add" id="another">${credentials.addAnother}</button>`;
  const connectLabel = hasOthers ? texts.overview.connectAll : credentials.connectNext(title);
  const connect = html`<button class="primary" id="connect">${connectLabel}</button>`;
  const connectPath = hasOthers ? '/pair-all' : appliancePath(name, 'pair');
  return {
    title: credentials.title(title),
    narrow: true,
    body: html`<div class="health">!${icon('good')}<h1>${isNewAppliance ? credentials.added(title) : credentials.rotated(title)}</h1></div>
<p>${credentials.keep}</p>
!${isNewAppliance && connected !== null ? html`<p>${texts.connectionChoice.connected(connected)}</p>` : ''}
<section class="card" aria-label="${credentials.title(title)}">
!${row('client-id', credentials.clientId, clientId)}
!${row('client-secret', credentials.clientSecret, all.client_secret)}
!${endpoints.map(({ id, label, url }, index) => row(id, label, url, index === endpoints.length - 1 ? addressHint : ''))}
!${row('ca-pin', credentials.pin, caFingerprint)}
</section>
<section class="card" aria-labelledby="qr"><h2 id="qr">${credentials.qr}</h2>
!${qrSvg(JSON.stringify(all), credentials.qr) ?? ''}
<p class="hint">${credentials.qrHint}</p></section>
<div class="actions">!${needsLogin ? csrfForm(session, connectPath, connect) : ''}!${isNewAppliance ? csrfForm(session, done, another) : ''}!${csrfForm(session, done, doneButton)}</div>`,
  };
}
