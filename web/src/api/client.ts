// Requests to the server that served this page.

/** An answer other than 2xx, with the server's own words. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

const answerMillis = 30_000;

const tokenKey = "lowwater.token";

/** The bearer token, kept for this browser tab only. */
export const token = {
  get: (): string | null => sessionStorage.getItem(tokenKey),
  set: (value: string): void => sessionStorage.setItem(tokenKey, value),
  clear: (): void => sessionStorage.removeItem(tokenKey),
};

/** request sends one request with the token; it throws ApiError, or what fetch throws. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  const bearer = token.get();
  if (bearer) {
    headers.set("Authorization", `Bearer ${bearer}`);
  }
  // Relative, so that the page also works behind a proxy that adds a prefix.
  const response = await fetch(`.${path}`, { ...init, headers, cache: "no-store" });
  if (!response.ok) {
    throw new ApiError(response.status, errorText(await response.text()) || response.statusText || `HTTP ${response.status}`);
  }
  return response;
}

/** getJSON gives up on a server that does not answer in time: it may be gone without a word. */
export async function getJSON<T>(path: string, signal: AbortSignal): Promise<T> {
  const late = AbortSignal.timeout(answerMillis);
  try {
    return (await (await request(path, { signal: AbortSignal.any([signal, late]) })).json()) as T;
  } catch (error) {
    throw late.aborted ? new Error(`no answer within ${answerMillis / 1000} s`) : error;
  }
}

/** errorText takes the message out of Flink's {"errors": [...]}, without class name and stack. */
export function errorText(body: string): string {
  let first = body;
  try {
    const parsed: unknown = JSON.parse(body);
    const errors = (parsed as { errors?: unknown }).errors;
    if (Array.isArray(errors) && errors.length > 0) {
      first = String(errors[0]);
    }
  } catch {
    // Not JSON: the text as it is.
  }
  return first.split("\n")[0]!.replace(/^(?:[a-z_$][\w$]*\.)+[A-Z][\w$]*:\s*/, "").trim();
}

export function cancelJob(jid: string): Promise<Response> {
  return request(`/jobs/${jid}?mode=cancel`, { method: "PATCH" });
}

/** stopJob stops gracefully. Flink's own way would need a savepoint. */
export function stopJob(jid: string): Promise<Response> {
  return request(`/lowwater/jobs/${jid}/stop`, { method: "POST" });
}
