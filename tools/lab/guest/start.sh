#!/lab/busybox sh
# First process of the lab guest once the root disk is there: mounts what a Linux system has, runs the job
# in a cgroup of its own with its output on the ports "lab.stdout" and "lab.stderr", tells its exit code and
# turns the machine off.

milestone() {
  read -r uptime _ </proc/uptime
  echo "$1 $uptime" >/dev/virtio-ports/lab.milestones
}

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin
export HOME=/root LANG=C.UTF-8 TMPDIR=/var/tmp
cgroup=/sys/fs/cgroup

mkdir -p /dev/pts /dev/shm
mount -t devpts -o mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t cgroup2 cgroup2 $cgroup
mount -t securityfs securityfs /sys/kernel/security
mount -t bpf bpf /sys/fs/bpf
ln -s /proc/self/fd /dev/fd
ln -s /proc/self/fd/0 /dev/stdin
ln -s /proc/self/fd/1 /dev/stdout
ln -s /proc/self/fd/2 /dev/stderr
ip link set lo up
hostname lab
for controller in $(cat $cgroup/cgroup.controllers); do
  echo "+$controller" >$cgroup/cgroup.subtree_control
done
mkdir $cgroup/job

# Pipes, because a port cannot be opened a second time, which a write to /dev/stdout does.
mkfifo /run/stdout /run/stderr
cat /run/stdout >/dev/virtio-ports/lab.stdout &
cat /run/stderr >/dev/virtio-ports/lab.stderr &

milestone job
cd /repo || exit
(
  echo 0 >$cgroup/job/cgroup.procs
  exec /bin/sh /run/job.sh
) </dev/null >/run/stdout 2>/run/stderr
code=$?
milestone end

# What the job left behind holds the pipes open.
echo 1 >$cgroup/job/cgroup.kill
wait
echo "exit $code" >/dev/virtio-ports/lab.milestones
poweroff -f
