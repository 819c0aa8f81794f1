// scrubjay setup: written by `scrubjay setup opencode`, taken away by `scrubjay setup --remove opencode`.
// Hands what happens in a session to scrubjay-hook, and its answer to the model. OpenCode 1.x calls default.server, 2.x
// default.setup, and 1.18 both: the flag keeps everything from being taken in twice. A hook that throws fails the person's
// turn, so nothing here does; scrubjay-hook answers within its time limit or is ended.
import { spawn } from "node:child_process"

const HOOK = __HOOK__
const LIMIT_MS = 5000
const OWN = /^(mcp__)?scrubjay[_-]/

const call = (words, payload) =>
  new Promise((resolve) => {
    try {
      const child = spawn(HOOK[0], [...HOOK.slice(1), ...words], { stdio: ["pipe", "pipe", "ignore"], windowsHide: true })
      const timer = setTimeout(() => child.kill(), LIMIT_MS)
      const chunks = []
      const done = () => {
        clearTimeout(timer)
        resolve(Buffer.concat(chunks).toString("utf8"))
      }
      child.on("error", done)
      child.on("close", done)
      child.stdin.on("error", () => {})
      child.stdout.on("data", (chunk) => chunks.push(chunk))
      child.stdin.end(JSON.stringify(payload))
    } catch {
      resolve("")
    }
  })

const textOf = (printed) => {
  const text = printed.trim()
  if (!text.startsWith("{")) return text
  try {
    const answer = JSON.parse(text)
    return answer.additionalContext ?? answer.hookSpecificOutput?.additionalContext ?? ""
  } catch {
    return ""
  }
}

const hooksIn = (directory, client) => {
  const contexts = new Map() // by session: what its next request is to be given
  const parents = new Map() // sessions that another one started: their prompts are not a person's
  const started = new Set()
  let last = "" // session
  let queue = Promise.resolve() // events arrive in the order in which they happened
  const whole = (session, payload) => {
    last = session ?? last
    return { ...payload, directory, ...(parents.has(session) ? { parentID: parents.get(session) } : {}) }
  }
  const capture = (event, session, payload) => {
    const said = whole(session, payload)
    return (queue = queue.then(() => call(["opencode", event], said)))
  }
  const inject = (event, session, payload) => {
    const said = whole(session, payload)
    return (queue = queue.then(async () => {
      const text = textOf(await call(["inject", "opencode", event], said))
      if (text) contexts.set(session, [...(contexts.get(session) ?? []), text])
    }))
  }
  const start = async (session, payload) => {
    if (!session || started.has(session)) return
    started.add(session)
    if (payload?.info?.parentID) parents.set(session, payload.info.parentID)
    else await inject("session.created", session, payload)
  }
  const about = async (session) => {
    try {
      const limit = new Promise((resolve) => setTimeout(resolve, 1000))
      return (await Promise.race([client?.session?.get({ path: { id: session } }), limit]))?.data
    } catch {}
  }
  return {
    event: async ({ event }) => {
      const session = event.properties?.sessionID ?? event.properties?.info?.id
      if (event.type === "session.created") await start(session, event.properties)
      else if (/^session\.(compacted|deleted)$/.test(event.type)) await capture(event.type, session, event.properties)
    },
    "chat.message": async (input, output) => {
      // The event that a session began may come after its first prompt.
      const session = input.sessionID
      if (!started.has(session)) await start(session, { sessionID: session, info: (await about(session)) ?? { id: session } })
      await inject("chat.message", input.sessionID, { input, output })
    },
    "tool.execute.after": async (input, output) => {
      if (!OWN.test(input.tool)) await capture("tool.execute.after", input.sessionID, { input, output })
    },
    "experimental.text.complete": async (input, output) => {
      await capture("text.complete", input.sessionID, { input, output })
    },
    "experimental.chat.system.transform": async (input, output) => {
      await queue
      for (const text of contexts.get(input?.sessionID) ?? []) output.system.push(text)
    },
    dispose: async () => {
      if (last) await capture("dispose", last, { sessionID: last })
      await queue
    },
  }
}

let used = "" // which of the two interfaces this process speaks

const server = async ({ directory, client }) => {
  if (used === "setup") return {}
  used = "server"
  return hooksIn(directory, client)
}

const setup = async (ctx) => {
  await new Promise((resolve) => setTimeout(resolve, 0)) // where both are called, server is the one that is used
  if (used || !ctx?.session?.hook) return
  used = "setup"
  const hooks = hooksIn(ctx.directory ?? process.cwd())
  const quietly = (work) => async (e) => {
    try {
      await work(e)
    } catch {}
  }
  await Promise.allSettled([
    ctx.session.hook(
      "prompt",
      quietly((e) =>
        hooks["chat.message"](
          { sessionID: e.sessionID },
          { message: { id: e.messageID, role: "user", sessionID: e.sessionID }, parts: [{ type: "text", text: String(e.prompt?.text ?? e.prompt) }] },
        ),
      ),
    ),
    ctx.session.hook("context", quietly((e) => hooks["experimental.chat.system.transform"](e, e))),
    ctx.tool?.hook?.(
      "execute.after",
      quietly((e) => hooks["tool.execute.after"]({ tool: e.tool, sessionID: e.sessionID, callID: e.id, args: e.input }, { output: e.result ?? e.error })),
    ),
  ])
}

export default { id: "scrubjay", server, setup }
