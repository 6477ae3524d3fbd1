-- Sends the requests of a file in turn: a line each, of a path, a tab, and a body or nothing.
-- The first argument is the file; with `once` as the second no request is sent twice, and what comes
-- after the last is counted as left over. The result is a line of JSON.

local requests, at, once = {}, 0, false

function setup(thread)
   made = thread
end

function init(args)
   local headers = { ["Content-Type"] = "application/json" }
   for line in io.lines(args[1]) do
      local path, body = line:match("^(.-)\t(.*)$")
      if body == "" then
         requests[#requests + 1] = wrk.format("POST", path)
      else
         requests[#requests + 1] = wrk.format("POST", path, headers, body)
      end
   end
   once = args[2] == "once"
   left_over = 0
end

function request()
   at = at + 1
   if at > #requests then
      if once then
         left_over = left_over + 1
         at = #requests
      else
         at = 1
      end
   end
   return requests[at]
end

function done(summary, latency, _)
   local errors = summary.errors
   local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
   io.write(string.format(
      '\n{"requests":%d,"seconds":%.6f,"failed":%d,"left_over":%d,"p50":%.3f,"p99":%.3f}\n',
      summary.requests, summary.duration / 1e6, failed, made:get("left_over"),
      latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
