-- Stops users from expanding other people's jobs.
--
-- With SchedulerParameters=permit_job_expansion, which drive mode "merge" needs, Slurm
-- lets everybody ask for --dependency=expand:JOBID of any job, also of another user or
-- account. This guard permits it to the job's owner and to root (and to SlurmUser or
-- others named below), in the one form that Evoslurm uses.
--
-- To install: copy it beside slurm.conf, or take its function "allowed" into the
-- job_submit.lua that is there already; set JobSubmitPlugins=lua; restart slurmctld.

-- Numeric user ids that may expand anybody's job, beside root: a sidecar that runs as
-- SlurmUser and merges in its own name needs that account's id here.
local privileged = { [0] = true }

-- allowed says whether the user may have a job with this dependency, and why not.
local function allowed(dependency, uid)
	if dependency == nil or not string.find(string.lower(dependency), "expand", 1, true) then
		return true
	end
	if privileged[uid] then
		return true
	end
	local id = string.match(dependency, "^expand:(%d+)$")
	if id == nil then
		return false, "expand must be the only dependency, on one job, as in expand:123"
	end
	local base = slurm.jobs[id] or slurm.jobs[tonumber(id)]
	if base == nil or base.user_id ~= uid then
		return false, "job " .. id .. " is not yours to expand"
	end
	return true
end

local function check(dependency, uid, tell)
	local ok, why = allowed(dependency, uid)
	if ok then
		return slurm.SUCCESS
	end
	if tell then -- Slurm has no way to tell a user why a change is refused
		slurm.log_user("%s", why)
	end
	slurm.log_info("evoslurm guard: user %u refused: %s", uid, why)
	return slurm.ERROR
end

function slurm_job_submit(job_desc, part_list, submit_uid)
	return check(job_desc.dependency, submit_uid, true)
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
	return check(job_desc.dependency, modify_uid, false)
end

return slurm.SUCCESS
