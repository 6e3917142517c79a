#include "base/row_loss.h"
#include "layers/layers.h"

pl_id pl_net_top_rows(pl_net *n, pl_id rows, pl_id scores, int64_t count)
{
    pl_top_k_args most = pl_top_k_none;
    pl_gather_rows_args a = pl_gather_rows_none;
    most.x = scores, most.count = count;
    a.tokens = rows, a.index = pl_build_top_k(&n->b, &most);
    return pl_build_gather_rows(&n->b, &a);
}

pl_id pl_net_cross_entropy(pl_net *n, pl_id logits, pl_id targets, const pl_loss_term *t)
{
    pl_cross_entropy_args a = pl_cross_entropy_none;
    a.logits = logits, a.target = targets, a.kind = PL_CROSS_ENTROPY_SOFTMAX;
    a.scale = t->scale, a.loss = t->sum, a.counted = t->counted;
    return pl_build_cross_entropy(&n->b, &a);
}

/* Rows of logits alive at once: half a megabyte of them, at least 32 rows. */
static int64_t chunk_rows(int64_t classes)
{
    int64_t rows = (512 << 10) / (4 * classes) / 32 * 32;
    return rows < 32 ? 32 : rows;
}

pl_id pl_net_linear_losses(pl_net *n, pl_linear_ce_args *a)
{
    a->chunk_rows = chunk_rows(pl_net_extent(n, a->weight, 0));
    a->h = pl_net_flow(n, a->h, a->weight);
    return pl_build_linear_ce(&n->b, a);
}

pl_id pl_net_linear_cross_entropy(pl_net *n, pl_id h, pl_id weight, pl_id targets, pl_id scale, pl_id sum)
{
    pl_linear_ce_args a = pl_linear_ce_none;
    a.h = h, a.weight = weight, a.target = targets, a.scale = scale, a.loss = sum;
    return pl_net_linear_losses(n, &a);
}

pl_id pl_net_squared_error(pl_net *n, pl_id x, pl_id y, const pl_loss_term *t)
{
    pl_squared_error_args a = pl_squared_error_none;
    a.a = x, a.b = y, a.scale = t->scale, a.loss = t->sum, a.counted = t->counted;
    return pl_build_squared_error(&n->b, &a);
}

pl_id pl_net_cosine_loss(pl_net *n, pl_id x, pl_id y, const pl_loss_term *t)
{
    pl_cosine_loss_args a = pl_cosine_loss_none;
    a.a = x, a.b = y, a.scale = t->scale, a.loss = t->sum, a.counted = t->counted;
    return pl_build_cosine_loss(&n->b, &a);
}

pl_id pl_net_logit_loss(pl_net *n, pl_id logit, pl_id target, const pl_loss_term *t)
{
    pl_bce_with_logits_args a = pl_bce_with_logits_none;
    a.q = logit, a.y = target, a.scale = t->scale, a.loss = t->sum, a.counted = t->counted;
    return pl_build_bce_with_logits(&n->b, &a);
}

pl_id pl_net_norm_penalty(pl_net *n, pl_id x, const pl_loss_term *t)
{
    pl_norm_penalty_args a = pl_norm_penalty_none;
    a.x = x, a.scale = t->scale, a.loss = t->sum, a.counted = t->counted;
    return pl_build_norm_penalty(&n->b, &a);
}
