// What the unmodified JavaScript SDK of E2B is used for: the exercises of e2b_exercises/, by the same names.
//
// `node e2b_exercises.mjs FOLDER`, with the SDK's variables set, prints what works as JSON. FOLDER has the SDK installed.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const folder = join(process.argv[2], 'node_modules', 'e2b')
const told = JSON.parse(readFileSync(join(folder, 'package.json')))
const e2b = createRequire(import.meta.url)(folder) // as modules, some versions cannot build templates
const { Sandbox, CommandExitError, InvalidArgumentError, NotFoundError, TimeoutError } = e2b
const LONGEST_MS = 50_000

class Absent extends Error {}

function member(of, name) {
  if (of?.[name] === undefined) throw new Absent(name)
  return of[name].bind(of)
}

async function pages(paginator) {
  const found = []
  while (paginator.hasNext) found.push(await paginator.nextItems())
  return found
}

const text = (bytes) => new TextDecoder().decode(bytes)

const EXERCISES = {
  async metadata_and_lists() {
    const made = await Sandbox.create({ metadata: { 'a b': 'ä/&=' }, envs: { A: '1' }, timeoutMs: 100_000 })
    assert.equal((await made.commands.run('echo $A')).stdout, '1\n')
    const [page] = await pages(Sandbox.list({ query: { metadata: { 'a b': 'ä/&=' } } }))
    assert.deepEqual(page.map((each) => each.sandboxId), [made.sandboxId])
    const info = await made.getInfo()
    assert.deepEqual([info.metadata, info.templateId], [{ 'a b': 'ä/&=' }, 'base'])
    assert.ok(Math.abs(info.endAt - info.startedAt - 100_000) < 10_000)
    await made.kill()
    assert.equal(await made.isRunning(), false)
  },
  async time_and_connecting(box) {
    await box.setTimeout(1_000_000)
    const again = await Sandbox.connect(box.sandboxId)
    assert.equal((await again.commands.run('echo here')).stdout, 'here\n')
    const info = await box.getInfo()
    assert.ok(info.endAt - info.startedAt > 900_000)
  },
  async use_figures(box) {
    const [found] = await member(box, 'getMetrics')()
    assert.ok(found.memUsed > 0)
  },
  async pausing_and_going_on(box) {
    const pause = box.pause ? member(box, 'pause') : member(box, 'betaPause')
    await box.files.write('kept', 'x')
    await pause()
    assert.equal(await box.isRunning(), false)
    const again = await Sandbox.connect(box.sandboxId)
    assert.equal(await again.files.read('kept'), 'x')
  },
  async snapshots(box) {
    const take = member(box, 'createSnapshot')
    await box.files.write('f', 'before')
    const kept = await take()
    await box.files.write('f', 'after')
    const made = await Sandbox.create(kept.snapshotId)
    assert.equal(await made.files.read('f'), 'before')
    await made.kill()
    assert.equal(await Sandbox.deleteSnapshot(kept.snapshotId), true)
  },
  async forks(box) {
    const fork = member(box, 'fork')
    await box.files.write('f', 'mine')
    const [copy] = await fork()
    await copy.files.write('f', 'its')
    assert.equal(await box.files.read('f'), 'mine')
    await copy.kill()
  },
  async template_builds() {
    if (!e2b.Template) throw new Absent('Template')
    const wanted = e2b.Template().fromBaseImage().setEnvs({ A: '1' }).runCmd('echo $A$HOME > ~/f')
    try {
      await e2b.Template.build(wanted, { alias: 'exercise' })
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
      await e2b.Template.build(wanted, 'exercise')
    }
    const made = await Sandbox.create('exercise')
    assert.equal(await made.files.read('f'), '1/home/user\n')
    await made.kill()
  },
  async errors_in_its_own_terms() {
    await assert.rejects(Sandbox.create('no-such-template/' + 'x'.repeat(300)), e2b.SandboxError)
    assert.equal(await Sandbox.kill('nothing'), false)
    const gone = await Sandbox.create()
    await gone.kill()
    await assert.rejects(gone.commands.run('true'), e2b.SandboxError)
  },
  async output_and_exit_code(box) {
    const found = await box.commands.run('echo out; echo err >&2; echo $MORE', { envs: { MORE: 'x' } })
    assert.deepEqual([found.stdout, found.stderr, found.exitCode], ['out\nx\n', 'err\n', 0])
    const ended = (code) => (error) => error instanceof CommandExitError && error.exitCode === code
    await assert.rejects(box.commands.run('exit 3'), ended(3))
    await assert.rejects(box.commands.run('kill -9 $$'), ended(137))
  },
  async users_and_directories(box) {
    assert.equal((await box.commands.run('id -un; pwd')).stdout, 'user\n/home/user\n')
    const found = await box.commands.run('id -un; echo $HOME; pwd', { user: 'root', cwd: '/usr' })
    assert.equal(found.stdout, 'root\n/root\n/usr\n')
  },
  async output_as_it_comes(box) {
    let seen = ''
    await box.commands.run('echo one; sleep 0.05; echo two', { onStdout: (data) => { seen += data } })
    assert.equal(seen, 'one\ntwo\n')
  },
  async time_limits(box) {
    await assert.rejects(box.commands.run('sleep 60', { timeoutMs: 600 }), TimeoutError)
    assert.equal((await box.commands.run('pgrep -x sleep || echo none')).stdout, 'none\n')
  },
  async long_commands(box) {
    const found = await box.commands.run(`echo '${'x'.repeat(200_000)}' | wc -c`)
    assert.equal(found.stdout.trim(), '200001')
  },
  async background_list_and_kill(box) {
    const handle = await box.commands.run('sleep 300', { background: true })
    assert.deepEqual((await box.commands.list()).map((each) => each.pid), [handle.pid])
    assert.equal(await box.commands.kill(handle.pid), true)
    await assert.rejects(handle.wait(), (error) => error.exitCode === 137)
    assert.equal(await box.commands.kill(handle.pid), false)
  },
  async connecting_to_a_command(box) {
    const handle = await box.commands.run('read line; echo got $line', { background: true, stdin: true })
    await handle.disconnect()
    const again = await box.commands.connect(handle.pid)
    await box.commands.sendStdin(handle.pid, 'it\n')
    assert.equal((await again.wait()).stdout, 'got it\n')
  },
  async input_and_its_end(box) {
    const close = member(box.commands, 'closeStdin')
    const handle = await box.commands.run('cat; echo end', { background: true, stdin: true })
    await box.commands.sendStdin(handle.pid, 'one\n')
    await close(handle.pid)
    assert.equal((await handle.wait()).stdout, 'one\nend\n')
  },
  async terminals(box) {
    let said = ''
    const terminal = await box.pty.create({ rows: 20, cols: 60, onData: (data) => { said += text(data) } })
    await box.pty.resize(terminal.pid, { rows: 31, cols: 77 })
    await box.pty.sendInput(terminal.pid, new TextEncoder().encode('stty size; exit\n'))
    await terminal.wait()
    assert.match(said, /31 77/)
  },
  async texts_bytes_and_streams(box) {
    await box.files.write('a/b.txt', 'käse')
    assert.equal(await box.files.read('a/b.txt'), 'käse')
    const every = Uint8Array.from({ length: 1_000_000 }, (_, at) => at % 256)
    await box.files.write('/tmp/large', every.buffer)
    assert.deepEqual(await box.files.read('/tmp/large', { format: 'bytes' }), every)
    const stream = await box.files.read('/tmp/large', { format: 'stream' })
    assert.deepEqual(new Uint8Array(await new Response(stream).arrayBuffer()), every)
  },
  async many_files_at_once(box) {
    const found = await box.files.write([{ path: 's/1', data: 'one' }, { path: 's/2', data: 'two' }])
    assert.deepEqual(found.map((each) => each.path), ['/home/user/s/1', '/home/user/s/2'])
    assert.equal(await box.files.read('s/2'), 'two')
  },
  async listing_and_describing(box) {
    await box.files.write('dir/file', '1234')
    await box.commands.run('mkdir dir/sub; ln -s file dir/link')
    const found = await box.files.list('dir')
    assert.deepEqual(found.map((each) => each.name).sort(), ['file', 'link', 'sub'])
    assert.equal(found.find((each) => each.name === 'sub').type, 'dir')
    assert.ok((await box.files.list('/home/user', { depth: 2 })).length >= 4)
    const info = await member(box.files, 'getInfo')('dir/file')
    assert.deepEqual([info.size, info.owner, info.permissions], [4, 'user', '-rw-r--r--'])
  },
  async making_moving_and_removing(box) {
    assert.equal(await box.files.makeDir('made/deep'), true)
    assert.equal(await box.files.makeDir('made/deep'), false)
    await box.files.write('made/x', 'x')
    assert.equal((await box.files.rename('made/x', 'made/y')).path, '/home/user/made/y')
    await box.files.remove('made')
    assert.equal(await box.files.exists('made'), false)
  },
  async what_is_not_there(box) {
    await assert.rejects(box.files.read('none'), NotFoundError)
    await assert.rejects(box.files.list('none'), NotFoundError)
    await assert.rejects(box.files.read('/home'), InvalidArgumentError)
  },
  async watching(box) {
    await box.files.makeDir('watched')
    let tell
    const heard = new Promise((resolve) => { tell = resolve })
    const watcher = await box.files.watchDir('watched', tell)
    await box.files.write('watched/x', 'x')
    assert.equal((await heard).name, 'x')
    await watcher.stop()
  },
  async signed_addresses(box) {
    await box.files.write('signed', 'by its owner')
    const url = await box.downloadUrl('signed', { useSignatureExpiration: 60 })
    assert.equal(await (await fetch(url)).text(), 'by its owner')
  },
}

function inTime(work) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done in ${LONGEST_MS} ms`)), LONGEST_MS)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

const found = {}
for (const [name, exercise] of Object.entries(EXERCISES)) {
  const box = await Sandbox.create()
  try {
    await inTime(exercise(box))
    found[name] = 'works'
  } catch (error) {
    found[name] = error instanceof Absent ? `absent: ${error.message}` : (error.stack ?? String(error))
  } finally {
    await box.kill()
  }
}
console.log(JSON.stringify({ version: told.version, found }, null, 1))
process.exit(0)
