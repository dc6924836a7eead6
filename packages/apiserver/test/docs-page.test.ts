import { ROUTES } from '@dsec/protocol';
import { expect, test } from 'vitest';
import { buildDocsPage, DOCS_ROUTE, escapeHtml } from '../src/http/docs-page.ts';

test('has every operation, and nothing from anywhere else', () => {
  const page = buildDocsPage('1.2.3');
  for (const [id, { path }] of Object.entries(ROUTES)) {
    expect(page).toContain(`<code>${id}</code>`);
    expect(page).toContain(path);
  }
  expect(page).not.toMatch(/<script|(src|href)="(https?:)?\/\//);
  expect(page).toContain("default-src 'none'");
});

test('text is text', () => {
  expect(escapeHtml(`<a href="x">&'`)).toBe('&#60;a href=&#34;x&#34;&#62;&#38;&#39;');
  expect(buildDocsPage('<b>')).not.toContain('<b>');
});

test('is no route of the public table', () => {
  const paths: string[] = Object.values(ROUTES).map(({ path }) => path);
  expect(paths).not.toContain(DOCS_ROUTE.path);
});
