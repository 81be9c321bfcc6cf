import { change } from './api.ts';
import { find } from './dom.ts';

const dialog = find('#ask-reset', HTMLDialogElement);

/** The button that resets the emulator, once a person has said yes. */
export function offerReset(): void {
  const button = find('#reset', HTMLButtonElement);
  button.hidden = false;
  button.addEventListener('click', () => {
    dialog.returnValue = '';
    dialog.showModal();
  });
  dialog.addEventListener('close', () => {
    if (dialog.returnValue === 'reset') void change('POST', 'reset', {}, 'The emulator is as it was at its start.');
  });
}
