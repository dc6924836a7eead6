#!/bin/busybox sh
# First process of the lab guest, in the initial file system: brings the disks and hands over to start.sh on
# the root disk. The port "lab.milestones" tells the host how far the guest has come, with the seconds since
# the kernel started.

fail() {
  echo "failed $*" >/dev/virtio-ports/lab.milestones
  poweroff -f
}

milestone() {
  read -r uptime _ </proc/uptime
  echo "$1 $uptime" >/dev/virtio-ports/lab.milestones
}

# Names for the ports, as udev would give them. The kernel makes the ports one by one; the report's is the
# last.
name_ports() {
  mkdir /dev/virtio-ports
  until [ -e /dev/virtio-ports/lab.report ]; do
    usleep 5000
    for port in /sys/class/virtio-ports/*; do
      read -r name <"$port/name" || continue
      device=/dev/${port##*/}
      [ -c "$device" ] && ln -sf "$device" "/dev/virtio-ports/$name"
    done
  done 2>/dev/null
}

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
name_ports
milestone kernel
for module in /modules/*.ko; do
  insmod "$module" || fail "insmod $module"
done
mount -t ext4 /dev/vda /disk || fail 'mounting the root disk'
mount -t ext4 -o noatime /dev/vdb /disk/repo || fail 'mounting the disk of the repository'
mount --bind /disk/node_modules /disk/repo/node_modules || fail 'mounting node_modules'
mount -t tmpfs -o mode=755 tmpfs /disk/run
cp /job.sh /disk/run/job.sh
for place in proc sys dev; do
  mount --move "/$place" "/disk/$place"
done
exec switch_root /disk /lab/start.sh
