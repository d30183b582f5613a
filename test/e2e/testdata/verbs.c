/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer that knows nothing of λ-NIC: it sends a file by libibverbs, as docs/rdma.md says.
 *
 *   verbs DEVICE GID_INDEX rc|uc write|write_imm|send MTU IMMEDIATE FILE
 *
 * It prints its queue pair's number and first PSN, and reads one line: the GID, the number, the address and the key of the other side.
 * Then it sends the file once for every line that it reads, and prints how each one went.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX (1 << 20)
#define PSN 0xabcdef

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

#define check(ok, what) \
	do { \
		if (!(ok)) \
			die(what); \
	} while (0)

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **all = ibv_get_device_list(NULL);
	struct ibv_context *device = NULL;

	check(all != NULL, "ibv_get_device_list");
	for (int i = 0; all[i]; i++)
		if (!strcmp(ibv_get_device_name(all[i]), name))
			device = ibv_open_device(all[i]);
	check(device != NULL, name);
	return device;
}

static struct ibv_qp *create(struct ibv_context *device, struct ibv_pd *domain, enum ibv_qp_type type)
{
	struct ibv_cq *done = ibv_create_cq(device, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = done,
		.recv_cq = done,
		.qp_type = type,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp;

	check(done != NULL, "ibv_create_cq");
	qp = ibv_create_qp(domain, &init);
	check(qp != NULL, "ibv_create_qp");
	return qp;
}

/* Step 3 of docs/rdma.md. */
static void connect_to(struct ibv_qp *qp, union ibv_gid *gid, int gid_index, unsigned int number, enum ibv_mtu mtu)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	int rc = qp->qp_type == IBV_QPT_RC;

	check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	      "to INIT");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu,
		.dest_qp_num = number,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = 1 },
	};
	attr.ah_attr.grh = (struct ibv_global_route){ .dgid = *gid, .sgid_index = gid_index, .hop_limit = 64 };
	check(!ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)),
	      "to RTR");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.sq_psn = PSN,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	check(!ibv_modify_qp(
		      qp, &attr,
		      IBV_QP_STATE | IBV_QP_SQ_PSN |
			      (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
				  : 0)),
	      "to RTS");
}

static enum ibv_wr_opcode operation(const char *name)
{
	if (!strcmp(name, "write"))
		return IBV_WR_RDMA_WRITE;
	if (!strcmp(name, "write_imm"))
		return IBV_WR_RDMA_WRITE_WITH_IMM;
	return IBV_WR_SEND_WITH_IMM;
}

static const char *sent(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	struct ibv_wc done;
	int n;

	check(!ibv_post_send(qp, wr, &bad), "ibv_post_send");
	do
		n = ibv_poll_cq(qp->send_cq, 1, &done);
	while (!n);
	check(n > 0, "ibv_poll_cq");
	return ibv_wc_status_str(done.status);
}

static enum ibv_mtu mtu_of(int bytes)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while (128 << mtu < bytes)
		mtu++;
	return mtu;
}

int main(int argc, char **argv)
{
	static char bytes[FILE_MAX];
	char line[256], address[64];
	unsigned int number, key;
	unsigned long long to;
	union ibv_gid gid;
	FILE *file;

	check(argc == 8, "usage: verbs DEVICE GID_INDEX rc|uc write|write_imm|send MTU IMMEDIATE FILE");
	file = fopen(argv[7], "rb");
	check(file != NULL, argv[7]);
	struct ibv_context *device = open_device(argv[1]);
	struct ibv_pd *domain = ibv_alloc_pd(device);

	check(domain != NULL, "ibv_alloc_pd");
	struct ibv_mr *memory = ibv_reg_mr(domain, bytes, sizeof(bytes), 0);
	struct ibv_qp *qp = create(device, domain, strcmp(argv[3], "uc") ? IBV_QPT_RC : IBV_QPT_UC);
	struct ibv_sge data = { .addr = (unsigned long)bytes, .length = fread(bytes, 1, sizeof(bytes), file) };

	check(memory != NULL, "ibv_reg_mr");
	data.lkey = memory->lkey;
	setlinebuf(stdout);
	printf("%u %u\n", qp->qp_num, PSN);
	check(fgets(line, sizeof(line), stdin) && sscanf(line, "%63s %u %llu %u", address, &number, &to, &key) == 4 &&
		      inet_pton(AF_INET6, address, gid.raw) == 1,
	      "the other side");
	connect_to(qp, &gid, atoi(argv[2]), number, mtu_of(atoi(argv[5])));

	struct ibv_send_wr wr = {
		.sg_list = &data,
		.num_sge = 1,
		.opcode = operation(argv[4]),
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htonl(atoi(argv[6])),
		.wr.rdma = { .remote_addr = to, .rkey = key },
	};
	while (fgets(line, sizeof(line), stdin))
		puts(sent(qp, &wr));
	return 0;
}
