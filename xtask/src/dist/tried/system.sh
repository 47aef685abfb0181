# Installs a package in the system of this machine under a layer that takes all changes, uses it, and removes it.
#
#   unshare --mount sh -eu system.sh FOLDER PACKAGE VERSION
#
# FOLDER is empty. It is a file system in memory until the end, so the layer works whatever the disk has.

place=$1
package=$2
version=$3
mount -t tmpfs tmpfs "$place"
mkdir "$place/changes" "$place/work" "$place/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$place/changes,workdir=$place/work" "$place/root"
mount --bind /dev "$place/root/dev"
mount --bind /proc "$place/root/proc"
cp "$package" "$place/root/steersman.deb"

inside() {
  chroot "$place/root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/nonexistent TERM=dumb LC_ALL=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive "$@"
}

# The configuration of an image for containers may leave out man pages.
inside dpkg --path-include='/usr/share/*' --install /steersman.deb
rm "$place/root/steersman.deb"
[ "$(inside steersman --version)" = "steersman $version" ]
[ "$(inside man --where steersman)" = /usr/share/man/man1/steersman.1 ]
inside bash --noprofile --norc -c '. /usr/share/bash-completion/bash_completion; _completion_loader steersman; complete -p steersman'
inside zsh -f -c 'autoload -Uz compinit; compinit -u -D; [[ $_comps[steersman] = _steersman ]]'
inside fish -c 'complete -C "steersman dem"' | grep '^demo'

inside dpkg --remove steersman
# What dpkg and its triggers wrote about all packages may differ.
left=$(cd "$place/changes" && find . ! -type d ! -path './var/lib/dpkg/*' ! -path './var/log/*' ! -path './var/cache/*')
left=$left$(find "$place/changes" -name '*steersman*')
if [ -n "$left" ]; then
  echo "files are left: $left"
  exit 1
fi
