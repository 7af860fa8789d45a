# Works tasks off by futures on the nodes that the file $NODES names. What is done is kept in a file, from which a requeued job goes on.
library(future)
words <- commandArgs(trailingOnly = TRUE)
tasks <- as.integer(words[1]); file <- words[2]; nodes <- Sys.getenv("NODES"); slots <- as.integer(Sys.getenv("SLOTS", 2))
work <- function(x) { Sys.sleep(as.numeric(Sys.getenv("PAUSE", 1))); list(square = x^2, node = Sys.getenv("SLURMD_NODENAME")) }

of <- paste(tasks, "tasks, by", R.version.string)
done <- if (file.exists(file)) readRDS(file) else list(of = of, results = list())
if (!identical(done$of, of)) stop(file, " is refused: it is for ", done$of, ", and this is for ", of)
keep <- function() { saveRDS(done, paste0(file, ".new")); file.rename(paste0(file, ".new"), file) }
todo <- setdiff(as.character(seq_len(tasks)), names(done$results))
slot <- list() # each has a host, a cluster of one worker, and the task and future that it is at
lost <- 0; left <- character(); kept <- Sys.time()

come <- function(host) { # starts R on a node by evolaunch
  message(format(Sys.time(), "%H:%M:%OS3"), ": ", host, " comes")
  # connectTimeout has no effect while R waits for a worker that never connects. An idle worker ends after the timeout, too.
  workers <- tryCatch(parallelly::makeClusterPSOCK(rep(host, slots), master = Sys.getenv("MASTER"), rshcmd = "evolaunch", rshopts = character(),
    revtunnel = FALSE, homogeneous = TRUE, timeout = 120, tries = 1L), error = function(e) message(host, ": ", conditionMessage(e)))
  message(format(Sys.time(), "%H:%M:%OS3"), ": ", length(workers), " workers on ", host)
  lapply(seq_along(workers), function(i) list(host = host, worker = workers[i]))
}
lose <- function(s, e) { # gives the task of a lost worker back; the task's own error ends all
  if (!inherits(e, "FutureError")) { keep(); stop("task ", s$task, ": ", conditionMessage(e)) }
  message(s$host, ": ", conditionMessage(e))
  todo <<- c(todo, s$task); lost <<- lost + 1
  NULL
}
look <- function(s) tryCatch({ # takes the result of a slot, if there is one
  if (length(s$task) == 0 || !resolved(s$future)) return(s)
  done$results[[s$task]] <<- value(s$future)
  s[c("host", "worker")]
}, error = function(e) lose(s, e))
leave <- function(s) { try(parallel::stopCluster(s$worker), silent = TRUE); NULL }
give <- function(s) {
  s$task <- todo[1]; todo <<- todo[-1]
  plan(cluster, workers = s$worker, .init = FALSE) # a plan with all workers would give tasks to those that leave
  tryCatch({ s$future <- future(work(x), globals = list(work = work, x = as.numeric(s$task))); s }, error = function(e) lose(s, e))
}
while (length(todo) > 0 || any(sapply(slot, function(s) length(s$task) > 0))) {
  slot <- Filter(length, lapply(slot, look))
  has <- readLines(nodes)
  files <- Sys.glob(paste0(nodes, ".leave.*")) # of leave.sh
  leaving <- sub(".*[.]leave[.]", "", files)
  slot <- Filter(length, lapply(slot, function(s) if (s$host %in% leaving && length(s$task) == 0) leave(s) else s))
  hosts <- unlist(lapply(slot, `[[`, "host"))
  left <- union(intersect(left, has), setdiff(leaving, hosts)) # the job still has them for a moment
  unlink(files[!leaving %in% hosts])
  for (host in setdiff(has, c(hosts, leaving, left))) slot <- c(slot, come(host))
  slot <- lapply(slot, function(s) if (length(s$task) == 0 && !s$host %in% leaving && length(todo) > 0) give(s) else s)
  slot <- Filter(length, slot)
  if (Sys.time() - kept > 5) { keep(); kept <- Sys.time() }
  Sys.sleep(0.05)
}
invisible(keep())
for (s in slot) leave(s)
cat(length(done$results), " done, sum ", format(sum(sapply(done$results, `[[`, "square")), scientific = FALSE), ", on ",
  length(unique(sapply(done$results, `[[`, "node"))), " nodes; ", lost, " began again\n", sep = "")
