/** How the pages look: on a phone at arm's length, by day and by night. */
export const STYLE = `
:root { color-scheme: light dark; --page: #eef1f4; --card: #fff; --text: #1b1f24; --quiet: #57606a; --line: #d0d7de;
  --good: #1a7f37; --bad: #b3261e; --link: #0b57d0; --on-link: #fff; }
@media (prefers-color-scheme: dark) { :root { --page: #12161b; --card: #1d232a; --text: #eceff2; --quiet: #a8b3bd; --line: #3a444f;
  --good: #57d27a; --bad: #ff9a91; --link: #8fb7ff; --on-link: #0d1b33; } }
body { font: 1.125rem/1.5 system-ui, sans-serif; margin: 0; min-height: 100vh; min-height: 100dvh; display: grid;
  grid-template-columns: minmax(0, 28rem); justify-content: center; align-items: center; background: var(--page); color: var(--text); }
main { margin: 1rem; padding: 2.25rem 1.25rem 1.25rem; text-align: center; background: var(--card);
  border: 1px solid var(--line); border-radius: 1rem; }
svg { display: block; width: 4.5rem; height: 4.5rem; margin: 0 auto 1.25rem; fill: none; stroke: var(--card); stroke-width: 2.4;
  stroke-linecap: round; stroke-linejoin: round; border-radius: 50%; }
.good { background: var(--good); } .bad { background: var(--bad); } .waiting, .warn, .neutral { background: var(--quiet); }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .75rem; }
h1, p { overflow-wrap: anywhere; } h1 { text-wrap: balance; } p { margin: 0; text-wrap: pretty; } p + p { margin-top: 1.25rem; }
code { display: inline-block; padding: .5rem .9rem; border: 1px solid var(--line); border-radius: .5rem; background: var(--page);
  font: 1rem/1.4 ui-monospace, monospace; user-select: all; }
a { display: inline-block; padding: .6rem 1.2rem; color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
.quiet { font-size: 1rem; color: var(--quiet); } .problem { color: var(--bad); font-weight: 600; }
.code { padding: .75rem 0; border: 1px solid var(--line); border-radius: .75rem; background: var(--page); white-space: nowrap;
  font: 700 min(2.25rem, 10vw)/1.2 ui-monospace, monospace; letter-spacing: .06em; }
p + .code, .code + p { margin-top: .75rem; } form { margin-top: 1.5rem; } form + p { margin-top: .75rem; } label { display: block; margin-bottom: .4rem; text-align: left; font-weight: 600; }
input, button { box-sizing: border-box; width: 100%; min-height: 3.5rem; border-radius: .75rem; }
input { padding: .5rem 1rem; border: 2px solid var(--quiet); background: var(--page); color: inherit; text-align: center;
  text-transform: uppercase; font: 600 clamp(1rem, 7vw, 1.75rem)/1.2 ui-monospace, monospace; letter-spacing: .06em; }
input[aria-invalid] { border-color: var(--bad); }
button { border: 0; padding: .75rem 1.25rem; background: var(--link); color: var(--on-link); font: 600 1.25rem/1.2 system-ui, sans-serif;
  cursor: pointer; } input + button { margin-top: 1rem; }
form p, form p + p { margin: 0 0 .6rem; text-align: left; } form > label + .quiet { margin-top: -.2rem; }
form + .quiet { margin-top: 1.75rem; } .quiet + p { margin-top: .75rem; }
footer { margin-top: 2rem; padding-top: 1rem; border-top: 1px solid var(--line); font-size: .9rem; color: var(--quiet); overflow-wrap: anywhere; }
`;
