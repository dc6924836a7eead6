import { describe, expect, it } from 'vitest';
import { parseJunit, parseTap } from './formats.mjs';

describe('parseTap', () => {
  it('reads passes, failures and skips with their reason, and nothing else', () => {
    const text = `TAP version 13
1..4
ok 1 - decodes
not ok 2 - encodes
# ok, a comment
ok 3 - mounts # SKIP needs root
ok - without a number
ok 4 # skip
cooking oil
okay`;
    const records = parseTap(text, 'make test').map(({ name, state, reason }) => [
      name,
      state,
      reason,
    ]);
    expect(records).toEqual([
      ['decodes', 'passed', undefined],
      ['encodes', 'failed', undefined],
      ['mounts', 'skipped', 'needs root'],
      ['without a number', 'passed', undefined],
      ['', 'skipped', undefined],
    ]);
  });
});

describe('parseJunit', () => {
  it('reads what pytest writes', () => {
    const xml = `<?xml version="1.0"?><testsuites><testsuite name="pytest" tests="5">
<testcase classname="tests.test_a" name="test_ok" time="0.250" />
<testcase classname="tests.test_a" name="test_bad[&lt;x&gt;]" time="0.1">
<failure message="assert 1 == 2&#10;more">def f():
&gt;   assert 1 == 2</failure></testcase>
<testcase classname="tests.test_a" name="test_setup" time="0"><error message="boom" /></testcase>
<testcase classname="tests.test_a" name="test_skip" time="0">
<skipped type="pytest.skip" message="needs &quot;root&quot;">x</skipped></testcase>
</testsuite></testsuites>`;
    const records = parseJunit(xml);
    expect(records.map(({ name, state }) => [name, state])).toEqual([
      ['test_ok', 'passed'],
      ['test_bad[<x>]', 'failed'],
      ['test_setup', 'failed'],
      ['test_skip', 'skipped'],
    ]);
    expect(records[0]?.durationMs).toBe(250);
    expect(records[1]?.errors[0]).toBe('assert 1 == 2\nmore\ndef f():\n>   assert 1 == 2');
    expect(records[2]?.errors[0]).toBe('boom');
    expect(records[3]?.reason).toBe('needs "root"');
  });
});
