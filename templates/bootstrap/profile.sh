# turnup: the programs of this node (kubelet, ctr, runc, ...) in login shells, after the host's own.
case ":$PATH:" in
*:/opt/turnup/bin:*) ;;
*) PATH="$PATH:/opt/turnup/bin" ;;
esac
# ctr shows the pods' containers and images.
: "${CONTAINERD_NAMESPACE:=k8s.io}"
export PATH CONTAINERD_NAMESPACE
