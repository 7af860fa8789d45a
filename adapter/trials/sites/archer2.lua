-- The rules that ARCHER2 documents for its jobs, in words of our own. They hold for
-- everybody, root too.

local function given(value)
	return value ~= nil and value ~= slurm.NO_VAL and value ~= slurm.NO_VAL64
end

local function refuse(why)
	slurm.log_user("Refused: %s", why)
	return slurm.ERROR
end

local function has(text, part)
	return string.find(text, part, 1, true) ~= nil
end

function slurm_job_submit(job, partitions, uid)
	local partition, qos, reservation = job.partition, job.qos, job.reservation
	if partition == nil then
		return refuse("name a partition (--partition).")
	end
	local many = given(job.min_nodes) and job.min_nodes > 1
	if has(partition, "standard") or has(partition, "highmem") then
		if (job.min_mem_per_cpu or 0) ~= 0 or (job.min_mem_per_node or 0) ~= 0 then
			return refuse("a job has whole nodes here: give no memory.")
		end
		job.shared = 0 -- whole nodes
	elseif has(partition, "serial") then
		if many then
			return refuse("serial nodes are shared: ask for no nodes.")
		end
		if job.shared == 0 then
			return refuse("serial nodes are shared: no --exclusive.")
		end
	end
	if not has(partition, "maintenance") then
		if job.req_nodes ~= nil then
			return refuse("ask for no specific nodes.")
		end
		if job.exc_nodes ~= nil then
			return refuse("exclude no nodes.")
		end
	end
	if qos == nil then
		return refuse("name a QoS (--qos).")
	end
	if reservation ~= nil then
		if reservation == "shortqos" and not has(qos, "short") then
			return refuse("the reservation shortqos is for the QoS short.")
		elseif reservation ~= "shortqos" and not has(qos, "reservation") then
			return refuse("a reservation is used with the QoS reservation.")
		end
	end
	local limited = given(job.time_limit)
	if has(qos, "short") then
		job.reservation = "shortqos"
		if not limited then
			job.time_limit = 20
		end
	end
	if has(qos, "long") and (not limited or job.time_limit <= 24 * 60) then
		return refuse("the QoS long is for jobs of more than 24 hours.")
	end
	if not limited then
		slurm.log_user("No --time: the default is short.")
	end
	return slurm.SUCCESS
end

function slurm_job_modify(job, old, partitions, uid)
	return slurm.SUCCESS
end

return slurm.SUCCESS
