import { html } from 'ghtml';
import type { Administration } from '../../core/administration.ts';
import type { ApplianceStatus } from '../../core/appliances/appliance-status.ts';
import type { ConnectionStatus } from '../../core/connections/connection-status.ts';
import { Failure } from '../../core/failure.ts';
import type { PageSession } from '../../core/setup-access.ts';
import type { AdministrationView } from '../administration-view.ts';
import { sendFailure, sendNothingChanged, withAppliance } from '../failures.ts';
import { backLink, csrfForm, type InstallerPage, sendInstallerPage } from '../installer-page.ts';
import type { PageContext } from '../page-context.ts';
import { appliancePath } from '../paths.ts';
import { type AuthenticatedRequest, type AuthenticatedRoutes, pathParameter } from '../sign-in/authenticated-routes.ts';
import { connectionOption, sharableConnections, usedConnections } from './connection-choice.ts';

/** The members of the form begin with this, before the name of a connection that is ticked. */
const TICK = 'login-';

/** Serves the form that lets an appliance use other connections. */
export function serveMove(guard: AuthenticatedRoutes, administration: AdministrationView): void {
  guard.page('/appliances/:name/move', (req) =>
    withAppliance(req, administration, (appliance, status) => {
      if (appliance.declared) throw new Failure('appliance_declared', appliance.name);
      return sendInstallerPage(
        req,
        200,
        movePage(req.context, req.session, appliance, status.connections, sharableConnections(status)),
      );
    }),
  );

  guard.form('/appliances/:name/move', async (submission) => {
    const name = pathParameter(submission, 'name');
    const chosen = [...submission.form.keys()].flatMap((key) => (key.startsWith(TICK) ? key.slice(TICK.length) : []));
    if (chosen.length === 0)
      return sendNothingChanged(submission, submission.context.texts.connectionChoice.none, name);
    try {
      await submission.administration.moveAppliance(name, chosen);
      return submission.reply.redirect(appliancePath(name), 303);
    } catch (error) {
      return sendMoveFailure(submission, administration, name, chosen[0] ?? '', error);
    }
  });
}

/**
 * Sends a page that says why an appliance can't use a connection.
 * @throws `error` itself if it is not a {@link Failure}
 */
export async function sendMoveFailure(
  req: AuthenticatedRequest,
  administration: Pick<Administration, 'status'>,
  name: string,
  connection: string,
  error: unknown,
) {
  if (!(error instanceof Failure && error.code === 'connection_mismatch')) return sendFailure(req, name, error);
  const { connectionChoice } = req.context.texts;
  const { appliances, connections } = await administration.status();
  const wanted = appliances.find((one) => one.name === name);
  const offered = connections.find((one) => one.name === connection);
  const { noPermissions } = connectionChoice;
  const text = connectionChoice.mismatch(
    wanted?.title ?? name,
    wanted?.scope ?? noPermissions,
    offered?.title ?? connection,
    offered?.scope ?? noPermissions,
  );
  return sendNothingChanged(req, text, name);
}

/** The form that lets an appliance use other connections. @param offered those that it could use */
function movePage(
  { texts }: PageContext,
  session: PageSession,
  appliance: ApplianceStatus,
  connections: readonly ConnectionStatus[],
  offered: readonly ConnectionStatus[],
): InstallerPage {
  const { name, title } = appliance;
  const { connectionChoice: own, installer } = texts;
  const heading = own.moveHeading(title);
  const used = usedConnections(appliance, connections);
  const ticks = offered.map((one) => {
    const { value, text } = connectionOption(one, texts);
    const checked = used.includes(one) ? ' checked' : '';
    return html`<label class="tick"><input type="checkbox" name="${TICK}${value}" value="yes"!${checked}>${text}</label>`;
  });
  const ownLogin = used.find((one) => one.own);
  const isConnected = ownLogin?.state !== 'unpaired' && ownLogin?.state !== 'pairing';
  const former = ownLogin === undefined ? '' : html`<p>${isConnected ? own.ownKept : own.ownRemoved}</p>`;
  const content = html`<fieldset class="field"><legend>${own.label}</legend>!${ticks}</fieldset>
<div class="actions"><button class="primary" id="yes">${own.moveButton}</button><a class="button" href="${appliancePath(name)}">${installer.cancel}</a></div>`;
  return {
    title: heading,
    narrow: true,
    body: html`!${backLink(appliancePath(name), title)}
<h1>${heading}</h1>
<p>${own.moveText}</p>
!${former}!${csrfForm(session, appliancePath(name, 'move'), content, 'fields')}`,
  };
}
