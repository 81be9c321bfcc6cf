import { Failure } from '../../core/failure.ts';
import { appliancePath } from '../appliance/appliance-path.ts';
import { rotateQuestion } from '../appliance/appliance-questions.ts';
import { sendFailure } from '../failures.ts';
import { sendInstallerPage } from '../installer-page.ts';
import { questionPage, refusalPage } from '../questions.ts';
import type { Guard, SignedIn } from '../sign-in/guard.ts';
import { type CredentialsOptions, formToken, tokenOf } from './adding.ts';
import { credentialsPage, credentialsPath } from './credentials-page.ts';

/** Where credentials are shown. */
interface Place {
  readonly form: string;
  readonly name: string;
}

/** Giving an appliance a new secret, and showing the credentials of a new one or of that. */
export function serveCredentials(guard: Guard, { administration, random, shown }: CredentialsOptions): void {
  function ask(asked: SignedIn, status: number, name: string, token: string, keys: 'none' | 'asked' | 'missing') {
    const question = rotateQuestion(asked.frame.texts, name, token, keys);
    return sendInstallerPage(asked, status, questionPage(question, asked.frame, asked.session));
  }

  guard.page('/appliances/:name/rotate-secret', async (asked) => {
    const { name } = params(asked);
    const { appliances } = await administration.status();
    const appliance = appliances.find((one) => one.name === name);
    if (appliance === undefined) return sendFailure(asked, name, new Failure('appliance_unknown', name));
    if (appliance.declared) return sendFailure(asked, name, new Failure('appliance_declared', name));
    return ask(asked, 200, name, formToken(random), 'none');
  });

  guard.form('/appliances/:name/rotate-secret', async (sent) => {
    const { name } = params(sent);
    const { form, session, reply } = sent;
    const token = tokenOf(form) ?? formToken(random);
    try {
      await shown.once(session, token, name, async () => ({
        issued: await administration.rotateSecret(name, form.get('replace_keys') === 'yes'),
        isNew: false,
      }));
      return reply.redirect(credentialsPath(token, name), 303);
    } catch (error) {
      const hasKeys = error instanceof Failure && error.code === 'appliance_has_keys';
      if (!hasKeys) return sendFailure(sent, name, error);
      return ask(sent, 409, name, token, form.has('asked_keys') ? 'missing' : 'asked');
    }
  });

  guard.page('/credentials/:form/:name', async (asked) => {
    const { form, name } = params(asked);
    const { frame, session } = asked;
    const found = await shown.find(session, form, name);
    if (found !== null) {
      const done = `${credentialsPath(form, name)}/done`;
      return sendInstallerPage(asked, 200, credentialsPage(found, frame, session, done));
    }
    const { adding, appliance } = frame.texts;
    const back = { href: '/', text: appliance.backToOverview };
    return sendInstallerPage(asked, 410, refusalPage(adding.credentials.gone, adding.credentials.goneText, back));
  });

  guard.form('/credentials/:form/:name/done', async (sent) => {
    const { form, name } = params(sent);
    shown.forget(sent.session, form, name);
    return sent.reply.redirect(appliancePath(name), 303);
  });
}

function params({ request }: SignedIn): Place {
  return request.params as Place;
}
