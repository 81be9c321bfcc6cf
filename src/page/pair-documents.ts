import { html } from 'ghtml';
import type { Pairing } from '../core/pairing.ts';
import type { Notice, Page } from './document.ts';
import { setbackText } from './pairing-notices.ts';

/** Characters of a wrong code that come back in the field. */
const LONGEST_SHOWN = 20;

/** The form that takes a user code. @param wrong a code that nobody was given; null where none was typed yet */
export function codePage(wrong: string | null): Page {
  const problem =
    wrong === null
      ? ''
      : html`<p class="problem" id="problem" role="alert">No appliance waits with this code.</p>
<p>Compare it with the appliance. If it has been there a while, start the pairing on the appliance once more.</p>`;
  const state = wrong === null ? '' : 'aria-invalid="true" aria-describedby="problem"';
  return {
    heading: 'Connect an appliance',
    mood: null,
    form: true,
    body: html`!${problem === '' ? '<p>Type the code that the appliance shows: eight letters.</p>' : problem}
<form method="get" action="/pair">
<label for="user_code">Code</label>
<input id="user_code" name="user_code" value="${(wrong ?? '').slice(0, LONGEST_SHOWN)}" required autofocus
 inputmode="text" autocapitalize="characters" autocomplete="off" autocorrect="off" spellcheck="false" maxlength="32" !${state}>
<button>Continue</button>
</form>`,
  };
}

/**
 * Names the appliance and what it asks for, and shows the code once more, to be compared with the appliance's screen:
 * whoever was sent the link of somebody else's appliance can see that here (RFC 8628, 3.3.1 and 5.4).
 */
export function confirmPage(pairing: Pairing, appliance: string): Page {
  const userCode = pairing.device?.userCode ?? '';
  const setback = setbackText(pairing);
  const before = setback === null ? '' : html`<p class="problem">${setback} Please log in once more.</p>`;
  return {
    heading: `Connect ${appliance}?`,
    mood: null,
    form: true,
    body: html`!${before}
<p>!${wanted(pairing.scope)}</p>
<p>Go on only if the appliance, or its app, shows this code:</p>
<p class="code">${userCode}</p>
<p class="quiet">Another code, or not your appliance? Then close this page.</p>
!${postForm(userCode, 'Continue')}
<p class="quiet">You log in at the portal next.</p>`,
  };
}

/** The portal could not be asked for a link. */
export function unreachablePage(userCode: string): Page {
  return {
    heading: 'The portal is out of reach',
    mood: 'bad',
    form: true,
    body: html`<p>The hub cannot reach it just now. Check that this home is online; the code stays good.</p>
!${postForm(userCode, 'Try again')}`,
  };
}

/** For a code that another has taken the place of. */
export function newerCode(appliance: string): Notice {
  return {
    mood: 'waiting',
    heading: `${appliance} shows another code by now`,
    text: 'It has started its pairing once more. If you have logged in already, this page tells how that ended when you load it again.',
    link: { href: '/pair', text: 'Type the new code' },
  };
}

export const TOO_MANY_OPEN: Notice = {
  mood: 'waiting',
  heading: 'Too many pairings are open',
  text: 'Wait a few minutes, and then go back and try again; the code stays good.',
};

export const FOREIGN: Notice = {
  mood: 'bad',
  heading: 'This came from another site',
  text: 'Open the link on the appliance, or type its code.',
  link: { href: '/pair', text: 'Type the code' },
};

export const NOT_A_FORM: Notice = {
  mood: 'bad',
  heading: 'This is not a form',
  text: 'Codes are taken as a form sends them.',
  link: { href: '/pair', text: 'Type the code' },
};

export const UNREADABLE: Notice = {
  mood: 'bad',
  heading: 'This address is not right',
  text: 'Open the link on the appliance once more, or type its code.',
  link: { href: '/pair', text: 'Type the code' },
};

/** @param seconds until a code is looked at again */
export function tooMany(seconds: number): Notice {
  return {
    mood: 'waiting',
    heading: 'Too many wrong codes',
    text: `Wait ${seconds} s, and then type the code once more.`,
    link: { href: '/pair', text: 'Type the code' },
  };
}

function wanted(scope: string | null): string {
  if (scope === null) return 'The portal says what it may do.';
  const names = scope.split(' ').map((name) => html`<b>${name}</b>`);
  const last = names.pop() ?? '';
  return `It asks for access to ${names.length === 0 ? last : `${names.join(', ')} and ${last}`}.`;
}

function postForm(userCode: string, button: string): string {
  return html`<form method="post" action="/pair"><input type="hidden" name="user_code" value="${userCode}">
<button>${button}</button></form>`;
}
