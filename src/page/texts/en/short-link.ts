/** Where the QR code on a small terminal leads, when there is no link to go on to. */
export const shortLink = {
  asking: 'One moment',
  askingText: 'The hub is asking the portal for the login. This page goes on by itself.',
};
